package claims_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/phi"
)

const today = "2026-02-15"

// whole returns a claim without findings.
func whole() claims.Claim {
	return claims.Claim{
		EntryID: "e", ClaimID: "CLM-2026-000001", Ordered: true, Gender: "female",
		Practice: claims.Practice{
			Name: "Elm Street Clinic", NPI: "1234567893", TaxID: "123456789", Taxonomy: "207Q00000X", Address: "1 Elm St", City: "Albany", State: "NY", Zip: "122071234",
			Phone: "5185550100",
		},
		Submitter: claims.Submitter{ID: "SUB1", Contact: "Billing", ReceiverID: "REC1", ReceiverName: "House", Usage: "P", PlaceOfService: "11"},
		Payer:     collections.Payer{ID: "000000000000001", Name: "Acme", EDI: "60054", Filing: "CI"},
		Coverage:  phi.Coverage{Payer: 1, MemberID: "W123-4"},
		Patient: phi.Demographics{
			FirstName: "Ada", LastName: "Lovelace", DateOfBirth: "1955-12-10", Address: &phi.Address{Line1: "1 Main St", City: "Troy", State: "NY", Zip: "12180", Country: "US"},
		},
		Provider:  claims.Provider{ID: "u", First: "Gregory", Last: "House", NPI: "1245319599", Taxonomy: "207R00000X"},
		Diagnoses: []string{"I10", "E11.9"}, CPTCode: "99454", Units: 1, ChargeCents: 4302, From: "2026-01-30", Through: "2026-01-30", Frequency: claims.Original,
	}
}

func codes(list []claims.Issue) (codes []string) {
	for _, f := range list {
		codes = append(codes, f.Code+" "+f.Field)
	}
	return codes
}

// TestPreflight breaks one field at a time; each problem is reported once, under the field that corrects it.
func TestPreflight(t *testing.T) {
	for name, row := range map[string]struct {
		change  func(*claims.Claim)
		errors  []string
		warning string
	}{
		"nothing":               {func(*claims.Claim) {}, nil, ""},
		"no practice name":      {func(c *claims.Claim) { c.Practice.Name = "" }, []string{"missing_billing_provider VIGIL_PRACTICE_NAME", "missing_submitter VIGIL_CLAIMS_SUBMITTER_NAME"}, ""},
		"no practice NPI":       {func(c *claims.Claim) { c.Practice.NPI = "" }, []string{"missing_billing_provider VIGIL_PRACTICE_NPI"}, ""},
		"wrong practice NPI":    {func(c *claims.Claim) { c.Practice.NPI = "1234567894" }, []string{"invalid_npi VIGIL_PRACTICE_NPI"}, ""},
		"no tax id":             {func(c *claims.Claim) { c.Practice.TaxID = "" }, []string{"missing_billing_provider VIGIL_PRACTICE_TAX_ID"}, ""},
		"no practice taxonomy":  {func(c *claims.Claim) { c.Practice.Taxonomy = "" }, []string{"missing_taxonomy VIGIL_PRACTICE_TAXONOMY"}, ""},
		"five digits of ZIP":    {func(c *claims.Claim) { c.Practice.Zip = "12207" }, []string{"missing_billing_provider VIGIL_PRACTICE_ZIP"}, ""},
		"no place of service":   {func(c *claims.Claim) { c.Submitter.PlaceOfService = "" }, []string{"invalid_place_of_service VIGIL_CLAIMS_PLACE_OF_SERVICE"}, ""},
		"no receiver":           {func(c *claims.Claim) { c.Submitter.ReceiverID = "" }, []string{"missing_submitter VIGIL_CLAIMS_RECEIVER_ID"}, ""},
		"no submitter at all":   {func(c *claims.Claim) { c.Submitter = claims.Submitter{PlaceOfService: "11"} }, nil, ""},
		"test files":            {func(c *claims.Claim) { c.Submitter.Usage = "T" }, nil, "test_usage VIGIL_CLAIMS_USAGE"},
		"no rendering provider": {func(c *claims.Claim) { c.Provider = claims.Provider{} }, []string{"missing_rendering_provider rendering_provider_id"}, ""},
		"no rendering NPI":      {func(c *claims.Claim) { c.Provider.NPI = "" }, []string{"invalid_npi users.npi"}, ""},
		"wrong rendering NPI":   {func(c *claims.Claim) { c.Provider.NPI = "1245319598" }, []string{"invalid_npi users.npi"}, ""},
		"no rendering taxonomy": {func(c *claims.Claim) { c.Provider.Taxonomy = "" }, []string{"missing_taxonomy users.taxonomy_code"}, ""},
		"no payer id":           {func(c *claims.Claim) { c.Payer.EDI = "" }, []string{"missing_payer_id payer.edi_payer_id"}, ""},
		"no filing code":        {func(c *claims.Claim) { c.Payer.Filing = "" }, []string{"missing_claim_filing_code payer.claim_filing_code"}, ""},
		"no member id":          {func(c *claims.Claim) { c.Coverage.MemberID = "" }, []string{"missing_member_id insurance.member_id"}, ""},
		"odd member id":         {func(c *claims.Claim) { c.Coverage.MemberID = "W~1" }, []string{"invalid_member_id insurance.member_id"}, ""},
		"no subscriber":         {func(c *claims.Claim) { c.Coverage.Relationship = "spouse" }, []string{"missing_subscriber insurance.subscriber"}, ""},
		"incomplete subscriber": {
			func(c *claims.Claim) {
				c.Coverage.Relationship, c.Coverage.Subscriber = "child", &phi.Subscriber{FirstName: "W", LastName: "K"}
			},
			[]string{"missing_birth_date insurance.subscriber.date_of_birth", "missing_gender insurance.subscriber.gender"},
			"",
		},
		"own insurance with another subscriber": {
			func(c *claims.Claim) {
				c.Coverage.Relationship, c.Coverage.Subscriber = "self", &phi.Subscriber{FirstName: "W", LastName: "K"}
			},
			nil, "subscriber_ignored insurance.subscriber",
		},
		"a second payer": {
			func(c *claims.Claim) { c.Coverage.Secondary = &phi.Coverage{Payer: 2} },
			[]string{"missing_payer_id insurance.secondary.payer_id", "missing_claim_filing_code insurance.secondary.payer_id", "missing_member_id insurance.secondary.member_id"},
			"",
		},
		"no birth date":        {func(c *claims.Claim) { c.Patient.DateOfBirth = "" }, []string{"missing_birth_date date_of_birth"}, ""},
		"born after":           {func(c *claims.Claim) { c.Patient.DateOfBirth = "2026-02-01" }, []string{"invalid_dates date_of_birth"}, ""},
		"no gender":            {func(c *claims.Claim) { c.Gender = "" }, []string{"missing_gender gender"}, ""},
		"no address":           {func(c *claims.Claim) { c.Patient.Address = nil }, []string{"missing_address address"}, ""},
		"no state":             {func(c *claims.Claim) { c.Patient.Address.State = "" }, []string{"missing_address address.state"}, ""},
		"a foreign address":    {func(c *claims.Claim) { c.Patient.Address = &phi.Address{Line1: "1", City: "Oslo", Country: "NO"} }, nil, ""},
		"no such state":        {func(c *claims.Claim) { c.Patient.Address.State = "XX" }, []string{"not_representable address.state"}, ""},
		"a short ZIP":          {func(c *claims.Claim) { c.Patient.Address.Zip = "121" }, []string{"not_representable address.zip"}, ""},
		"non-Latin letters":    {func(c *claims.Claim) { c.Patient.LastName = "Лавлейс" }, []string{"not_representable last_name"}, ""},
		"a long street":        {func(c *claims.Claim) { c.Patient.Address.Line1 = strings.Repeat("1 Main ", 9) }, []string{"not_representable address.line1"}, ""},
		"a non-Latin practice": {func(c *claims.Claim) { c.Practice.Name = "診療所" }, []string{"not_representable VIGIL_CLAIMS_SUBMITTER_NAME", "not_representable VIGIL_PRACTICE_NAME"}, ""},
		"a submitter too long": {func(c *claims.Claim) { c.Submitter.ID = "SUBMITTER0000016" }, []string{"not_representable VIGIL_CLAIMS_SUBMITTER_ID"}, ""},
		"short tax id":         {func(c *claims.Claim) { c.Practice.TaxID = "12345678" }, []string{"not_representable VIGIL_PRACTICE_TAX_ID"}, ""},
		"an odd taxonomy":      {func(c *claims.Claim) { c.Provider.Taxonomy = "207R" }, []string{"not_representable users.taxonomy_code"}, ""},
		"an odd filing code":   {func(c *claims.Claim) { c.Payer.Filing = "QQ" }, []string{"not_representable payer.claim_filing_code"}, ""},
		"an invalid payer state": {
			func(c *claims.Claim) {
				c.Payer.Address = collections.PayerAddress{Line1: "PO Box 1", City: "Hartford", State: "ZZ", PostalCode: "06103"}
			},
			[]string{"not_representable payer.address.state"},
			"",
		},
		"one diagnosis twice": {func(c *claims.Claim) { c.Diagnoses = []string{"E11.9", "I10", "I10"} }, nil, ""},
		"an outdated form":    {func(c *claims.Claim) { c.Diagnoses = []string{"I1Z"} }, []string{"invalid_diagnosis icd10_codes"}, ""},
		"a subscriber's non-Latin name": {
			func(c *claims.Claim) {
				c.Coverage.Relationship, c.Coverage.Subscriber = "child", &phi.Subscriber{FirstName: "W", LastName: "Кинг", DateOfBirth: "1950-02-28", Gender: "male"}
			},
			[]string{"not_representable insurance.subscriber.last_name"},
			"",
		},
		"a second payer's non-Latin name": {
			func(c *claims.Claim) {
				c.SecondaryPayer = collections.Payer{ID: "000000000000002", Name: "Бета", EDI: "1", Filing: "CI"}
				c.Coverage.Secondary = &phi.Coverage{Payer: 2, MemberID: "X1"}
			},
			[]string{"not_representable insurance.secondary.payer_id"},
			"",
		},
		"no submitter, non-Latin name": {func(c *claims.Claim) {
			c.Submitter, c.Patient.LastName = claims.Submitter{PlaceOfService: "11"}, "Лавлейс"
		}, []string{"not_representable last_name"}, ""},
		"no diagnosis":         {func(c *claims.Claim) { c.Diagnoses = nil }, []string{"missing_diagnosis icd10_codes"}, ""},
		"no ICD-10":            {func(c *claims.Claim) { c.Diagnoses = []string{"401.9"} }, []string{"invalid_diagnosis icd10_codes"}, ""},
		"thirteen diagnoses":   {func(c *claims.Claim) { c.Diagnoses = slices.Repeat([]string{"I10"}, 13) }, []string{"invalid_diagnosis icd10_codes"}, ""},
		"unknown diagnosis":    {func(c *claims.Claim) { c.UnknownDiagnoses = []string{"E11.9"} }, []string{"unknown_icd10 icd10_codes"}, ""},
		"a heading":            {func(c *claims.Claim) { c.Headings = []string{"E11"} }, []string{"unknown_icd10 icd10_codes"}, ""},
		"no list of the day":   {func(c *claims.Claim) { c.UncoveredDiagnoses = []string{"E11.9"} }, nil, "codes_not_covered icd10_codes"},
		"an external cause":    {func(c *claims.Claim) { c.Diagnoses = []string{"V00.01XA", "I10"} }, []string{"external_cause_principal icd10_codes"}, ""},
		"a later cause":        {func(c *claims.Claim) { c.Diagnoses = []string{"I10", "V00.01XA"} }, nil, ""},
		"odd modifier":         {func(c *claims.Claim) { c.Modifiers = []string{"9"} }, []string{"invalid_modifier modifiers"}, ""},
		"five modifiers":       {func(c *claims.Claim) { c.Modifiers = []string{"95", "GT", "25", "59", "76"} }, []string{"invalid_modifier modifiers"}, ""},
		"no units":             {func(c *claims.Claim) { c.Units = 0 }, []string{"invalid_units units"}, ""},
		"nothing charged":      {func(c *claims.Claim) { c.ChargeCents = 0 }, []string{"invalid_charge charge"}, ""},
		"a future service":     {func(c *claims.Claim) { c.From, c.Through = "2026-02-16", "2026-02-16" }, []string{"invalid_dates service_date"}, ""},
		"backwards":            {func(c *claims.Claim) { c.From = "2026-01-31" }, []string{"invalid_dates service_date"}, ""},
		"a year and a day":     {func(c *claims.Claim) { c.From, c.Through = "2025-02-14", "2025-02-14" }, nil, "timely_filing service_date"},
		"a year":               {func(c *claims.Claim) { c.From, c.Through = "2025-02-15", "2025-02-15" }, nil, ""},
		"no original claim":    {func(c *claims.Claim) { c.Frequency = claims.Replacement }, []string{"missing_original_claim payer_control_number"}, ""},
		"paid, no replacement": {func(c *claims.Claim) { c.NeedsReopening = true }, []string{"reopening_required insurance.payer_id"}, ""},
		"replacing":            {func(c *claims.Claim) { c.Frequency, c.PayerControl = claims.Replacement, "2026001" }, nil, ""},
		"not ordered":          {func(c *claims.Claim) { c.Ordered = false }, nil, "missing_order orders"},
		"self-pay":             {func(c *claims.Claim) { *c = claims.Claim{Ordered: true} }, nil, "self_pay insurance.payer_id"},
		"unreadable":           {func(c *claims.Claim) { *c = claims.Claim{Ordered: true, Unreadable: true} }, []string{"record_unreadable patient"}, "self_pay insurance.payer_id"},
	} {
		c := whole()
		row.change(&c)
		found := claims.Preflight(c, today)
		var warnings []string
		if row.warning != "" {
			warnings = []string{row.warning}
		}
		if !slices.Equal(codes(found.Errors), row.errors) || !slices.Equal(codes(found.Warnings), warnings) || found.OK() != (row.errors == nil) {
			t.Errorf("%s: %v, %v", name, codes(found.Errors), codes(found.Warnings))
		}
	}
}

// A printed claim contains no PHI.
func TestClaimDoesNotPrint(t *testing.T) {
	c := whole()
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v", c, &c), c.LogValue().String()} {
		if strings.Contains(text, "Lovelace") || strings.Contains(text, "W123") {
			t.Error(text)
		}
	}
}
