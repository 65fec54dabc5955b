package claims

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/icd10"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Issue is a reason for which a payer rejects a claim, or a warning.
type Issue struct {
	Code    string `json:"code"`
	Field   string `json:"field"` // where to correct it
	Message string `json:"message"`
}

// PreflightResult are the results of a preflight.
type PreflightResult struct {
	Errors, Warnings []Issue
}

// OK reports that the claim can be sent.
func (f PreflightResult) OK() bool { return len(f.Errors) == 0 }

// The codes of findings.
const (
	SelfPay              = "self_pay"
	TimelyFiling         = "timely_filing"
	TestUsage            = "test_usage"
	MissingOrder         = "missing_order"
	UnknownDiagnosis     = "unknown_icd10"
	CodesNotCovered      = "codes_not_covered"
	ReopeningRequired    = "reopening_required"
	ExternalCause        = "external_cause_principal"
	SubscriberIgnored    = "subscriber_ignored"
	MissingBilling       = "missing_billing_provider"
	MissingSubmitter     = "missing_submitter"
	MissingOrdering      = "missing_ordering_provider"
	MissingRendering     = "missing_rendering_provider"
	InvalidNPI           = "invalid_npi"
	MissingTaxonomy      = "missing_taxonomy"
	MissingPayer         = "missing_payer_id"
	MissingFilingCode    = "missing_claim_filing_code"
	MissingMember        = "missing_member_id"
	InvalidMember        = "invalid_member_id"
	MissingSubscriber    = "missing_subscriber"
	MissingName          = "missing_name"
	MissingBirthDate     = "missing_birth_date"
	MissingGender        = "missing_gender"
	MissingAddress       = "missing_address"
	MissingDiagnosis     = "missing_diagnosis"
	InvalidDiagnosis     = "invalid_diagnosis"
	InvalidPlace         = "invalid_place_of_service"
	InvalidModifier      = "invalid_modifier"
	InvalidUnits         = "invalid_units"
	InvalidCharge        = "invalid_charge"
	InvalidDates         = "invalid_dates"
	MissingSecondaryType = "missing_medicare_secondary_type"
	MissingOriginalClaim = "missing_original_claim"
	UnbalancedPrimary    = "primary_unbalanced"
	Unreadable           = "record_unreadable"
)

// Limits of a claim. Source: ASC X12N 005010X222A1 (837P): HI01 to HI12, SV101-3 to -6, NM103, NM109.
const (
	maxDiagnoses   = 12
	maxModifiers   = 4
	maxUnits       = 999
	maxMember      = 80
	maxChargeCents = 9_999_999_99 // limit of SV102 at common payers
)

var (
	memberPattern   = regexp.MustCompile("^[A-Za-z0-9!\"&'()+,./;?= -]{2,}$") // X12's basic set without our separators
	modifierPattern = regexp.MustCompile(`^[A-Z0-9]{2}$`)
	placePattern    = regexp.MustCompile(`^[0-9]{2}$`)
)

// preflightCheck collects findings.
type preflightCheck struct {
	PreflightResult
	claim Claim
}

func (pc *preflightCheck) addError(when bool, code, field, message string) {
	if when {
		pc.Errors = append(pc.Errors, Issue{code, field, message})
	}
}

func (pc *preflightCheck) addWarning(when bool, code, field, message string) {
	if when {
		pc.Warnings = append(pc.Warnings, Issue{code, field, message})
	}
}

// Preflight returns every reason for which a payer rejects a claim, as of a practice day. A self-pay claim has no payer errors. Source: ASC X12N
// 005010X222A1 (837P) for required data; docs/decisions/claims.md, "Preflight".
func Preflight(c Claim, today string) PreflightResult {
	k := &preflightCheck{claim: c, PreflightResult: PreflightResult{Errors: []Issue{}, Warnings: []Issue{}}}
	k.addError(c.Unreadable, Unreadable, "patient", "Part of the patient's record cannot be decrypted.")
	k.addWarning(!c.Ordered, MissingOrder, "orders", "No order of monitoring is on record on or before the first billed day.")
	if c.SelfPay() {
		k.addWarning(true, SelfPay, "insurance.payer_id", "No payer: the patient pays, and no claim is sent.")
		return k.PreflightResult
	}
	k.checkPractice()
	k.checkProvider()
	k.checkPayer()
	k.checkSubscriber()
	k.checkPatient()
	k.checkServiceLine(today)
	k.checkRepresentable(today)
	return k.PreflightResult
}

// checkPractice checks loops 1000A, 1000B and 2010AA.
func (pc *preflightCheck) checkPractice() {
	p, s := pc.claim.Practice, pc.claim.Submitter
	for _, f := range []struct{ value, name, what string }{
		{p.Name, "VIGIL_PRACTICE_NAME", "name"},
		{p.NPI, "VIGIL_PRACTICE_NPI", "National Provider Identifier"},
		{p.TaxID, "VIGIL_PRACTICE_TAX_ID", "tax id"},
		{p.Address, "VIGIL_PRACTICE_ADDRESS", "address"},
		{p.City, "VIGIL_PRACTICE_CITY", "city"},
		{p.State, "VIGIL_PRACTICE_STATE", "state"},
		{p.Zip, "VIGIL_PRACTICE_ZIP", "ZIP code"},
	} {
		pc.addError(f.value == "", MissingBilling, f.name, "The practice's "+f.what+" is not set.")
	}
	pc.addError(p.NPI != "" && !validate.ValidNPI(p.NPI), InvalidNPI, "VIGIL_PRACTICE_NPI", "The practice's National Provider Identifier has a wrong check digit.")
	pc.addError(p.Taxonomy == "", MissingTaxonomy, "VIGIL_PRACTICE_TAXONOMY", "The practice's taxonomy code is not set.")
	pc.addError(p.Zip != "" && len(validate.Digits(p.Zip)) != 9, MissingBilling, "VIGIL_PRACTICE_ZIP", "The practice's ZIP code needs all nine digits.")
	pc.addError(!placePattern.MatchString(s.PlaceOfService), InvalidPlace, "VIGIL_CLAIMS_PLACE_OF_SERVICE", "The place of service is two digits.")
	if s.ID == "" {
		return // claims are sent by other means: file settings are not required
	}
	for _, f := range []struct{ value, name, what string }{
		{cmp.Or(s.Name, p.Name), "VIGIL_CLAIMS_SUBMITTER_NAME", "submitter's name"},
		{cmp.Or(s.Phone, p.Phone), "VIGIL_CLAIMS_SUBMITTER_PHONE", "submitter's phone"},
		{s.Contact, "VIGIL_CLAIMS_SUBMITTER_CONTACT", "submitter's contact"},
		{s.ReceiverID, "VIGIL_CLAIMS_RECEIVER_ID", "receiver's id"},
		{s.ReceiverName, "VIGIL_CLAIMS_RECEIVER_NAME", "receiver's name"},
	} {
		pc.addError(f.value == "", MissingSubmitter, f.name, "The "+f.what+" is not set.")
	}
	pc.addWarning(s.Usage != "P", TestUsage, "VIGIL_CLAIMS_USAGE", "Files are marked as tests: payers do not pay them.")
}

// checkProvider checks loop 2310B.
func (pc *preflightCheck) checkProvider() {
	p := pc.claim.Provider
	if p.ID == "" {
		pc.addError(true, MissingRendering, "rendering_provider_id", "The entry has no rendering provider.")
		return
	}
	pc.addError(p.First.Reveal() == "" || p.Last.Reveal() == "", MissingName, "rendering_provider_id", "The rendering provider's name is not complete.")
	pc.addError(p.NPI == "", InvalidNPI, "users.npi", "The rendering provider has no National Provider Identifier.")
	pc.addError(p.NPI != "" && !validate.ValidNPI(p.NPI), InvalidNPI, "users.npi", "The rendering provider's National Provider Identifier has a wrong check digit.")
	pc.addError(p.Taxonomy == "", MissingTaxonomy, "users.taxonomy_code", "The rendering provider has no taxonomy code.")
	pc.checkNamed()
}

// checkNamed checks loops 2310A and 2420E: who referred the patient, and who ordered the monitoring, if the payer requires it.
func (pc *preflightCheck) checkNamed() {
	if r := pc.claim.Referring; r != nil {
		pc.addError(!validate.ValidNPI(r.NPI), InvalidNPI, "referring_provider.npi", "The referring provider's National Provider Identifier has a wrong check digit.")
	}
	if !pc.claim.Payer.SendOrderingProvider {
		return
	}
	o := pc.claim.Ordering
	if o == nil || o.FirstName == "" || o.LastName == "" {
		pc.addError(true, MissingOrdering, "orders", "The payer requires who ordered the monitoring, and no order names a person.")
		return
	}
	pc.addError(!validate.ValidNPI(o.NPI), InvalidNPI, "orders", "Who ordered the monitoring has no valid National Provider Identifier: name an ordering_provider.")
}

// checkPayer checks loops 2000B and 2010BB, and those of the secondary payer.
func (pc *preflightCheck) checkPayer() {
	p, member := pc.claim.Payer, pc.claim.Coverage.MemberID
	pc.addError(p.EDI == "", MissingPayer, "payer.edi_payer_id", "The payer's id at the clearinghouse is missing.")
	pc.addError(p.Filing == "", MissingFilingCode, "payer.claim_filing_code", "The payer's claim filing code is missing.")
	pc.addError(member == "", MissingMember, "insurance.member_id", "The member id is missing.")
	pc.addError(member != "" && (!memberPattern.MatchString(member) || len(member) > maxMember), InvalidMember, "insurance.member_id", "The member id has a character that a claim cannot carry.")
	second := pc.claim.Coverage.Secondary
	if second == nil || second.Payer == 0 {
		pc.addError(pc.claim.PrimaryDecision != nil, MissingPayer, "insurance.secondary.payer_id", "The patient has no second insurance.")
		return
	}
	pc.addError(pc.claim.SecondaryPayer.EDI == "", MissingPayer, "insurance.secondary.payer_id", "The second payer's id at the clearinghouse is missing.")
	pc.addError(pc.claim.SecondaryPayer.Filing == "", MissingFilingCode, "insurance.secondary.payer_id", "The second payer's claim filing code is missing.")
	pc.addError(pc.claim.SecondaryPayer.IsMedicare() && second.MedicareSecondaryType == "", MissingSecondaryType, "insurance.secondary.medicare_secondary_type",
		"Medicare is not the first payer: the reason (SBR05) is missing.")
	pc.addError(second.MemberID == "", MissingMember, "insurance.secondary.member_id", "The member id of the second insurance is missing.")
	if second.Relationship != "" && second.Relationship != "self" {
		pc.checkOtherSubscriber(second.Subscriber, "insurance.secondary.subscriber")
	}
}

// checkSubscriber checks loop 2010BA if the subscriber is not the patient.
func (pc *preflightCheck) checkSubscriber() {
	c := pc.claim.Coverage
	if pc.claim.HasOtherSubscriber() {
		pc.checkOtherSubscriber(c.Subscriber, "insurance.subscriber")
		return
	}
	pc.addWarning(c.Subscriber != nil, SubscriberIgnored, "insurance.subscriber", "The patient is the subscriber: the other subscriber on record is not sent.")
}

func (pc *preflightCheck) checkOtherSubscriber(s *phi.Subscriber, field string) {
	if s == nil {
		pc.addError(true, MissingSubscriber, field, "The subscriber is missing.")
		return
	}
	pc.addError(s.FirstName == "" || s.LastName == "", MissingName, field, "The subscriber's name is not complete.")
	pc.addError(s.DateOfBirth == "", MissingBirthDate, field+".date_of_birth", "The subscriber's date of birth is missing.")
	pc.addError(s.Gender == "", MissingGender, field+".gender", "The subscriber's gender is missing.")
}

// checkPatient checks loop 2010BA or 2010CA.
func (pc *preflightCheck) checkPatient() {
	p := pc.claim.Patient
	pc.addError(p.FirstName == "" || p.LastName == "", MissingName, "patient", "The patient's name is not complete.")
	pc.addError(p.DateOfBirth == "", MissingBirthDate, "date_of_birth", "The patient's date of birth is missing.")
	pc.addError(pc.claim.Gender == "", MissingGender, "gender", "The patient's gender is missing.")
	a := p.Address
	if a == nil {
		pc.addError(true, MissingAddress, "address", "The patient's address is missing.")
		return
	}
	pc.addError(a.Line1 == "", MissingAddress, "address.line1", "The patient's street address is missing.")
	pc.addError(a.City == "", MissingAddress, "address.city", "The patient's city is missing.")
	if a.Country == "" || a.Country == "US" {
		pc.addError(a.State == "", MissingAddress, "address.state", "The patient's state is missing.")
		pc.addError(a.Zip == "", MissingAddress, "address.zip", "The patient's ZIP code is missing.")
	}
}

// checkServiceLine checks loops 2300 and 2400.
func (pc *preflightCheck) checkServiceLine(today string) {
	c := pc.claim
	pc.addError(len(c.Diagnoses) == 0, MissingDiagnosis, "icd10_codes", "A claim needs a diagnosis.")
	pc.addError(len(c.Diagnoses) > maxDiagnoses, InvalidDiagnosis, "icd10_codes", "A claim has at most twelve diagnoses.")
	for _, code := range c.Diagnoses {
		pc.addError(!validate.ValidICD10(code), InvalidDiagnosis, "icd10_codes", "A diagnosis does not have the form of an ICD-10-CM code.")
	}
	pc.checkCodeLists()
	pc.addError(len(c.Modifiers) > maxModifiers || slices.ContainsFunc(c.Modifiers, func(m string) bool { return !modifierPattern.MatchString(m) }),
		InvalidModifier, "modifiers", "A line has at most four modifiers of two letters or digits.")
	pc.addError(c.Units < 1 || c.Units > maxUnits, InvalidUnits, "units", "The units must be 1 to 999.")
	pc.addError(c.ChargeCents <= 0 || c.ChargeCents > maxChargeCents, InvalidCharge, "charge", "The charge must be more than zero.")
	pc.addError(c.From == "" || c.From > c.Through, InvalidDates, "service_date", "The dates of service are not in order.")
	pc.addError(c.Through > today, InvalidDates, "service_date", "The service is in the future.")
	pc.addError(c.Patient.DateOfBirth > c.From, InvalidDates, "date_of_birth", "The service is before the patient's birth.")
	pc.addError(c.NeedsReopening, ReopeningRequired, "insurance.payer_id", "The claim is paid, and its payer takes no replacement: request a reopening from the payer.")
	pc.addError(c.Frequency != Original && c.PayerControl == "", MissingOriginalClaim, "payer_control_number", "A replacement or void needs the payer's number of the claim: give payer_control_number with resubmit/ or request-void/, or resubmit with new_claim.")
	pc.addError(c.PrimaryDecision != nil && c.PrimaryDecision.balanceCents(c.ChargeCents) != 0, UnbalancedPrimary, "adjustments",
		"What the first payer paid and adjusted is not the charge: the second payer would refuse the claim.")
	pc.addWarning(isPastTimelyFiling(c.Through, today), TimelyFiling, "service_date", "More than a year after the service: Medicare refuses it, other payers may earlier.")
}

// checkCodeLists checks the diagnoses against the list of the date of service. Source: docs/decisions/billing.md, "ICD-10"; ICD-10-CM Official Guidelines,
// I.B.2 (all characters) and I.C.20.a.6 (external causes are never principal).
func (pc *preflightCheck) checkCodeLists() {
	c := pc.claim
	pc.addError(len(c.Headings) > 0, UnknownDiagnosis, "icd10_codes", "A heading, which needs further characters: "+strings.Join(c.Headings, ", ")+".")
	pc.addError(len(c.UnknownDiagnoses) > 0, UnknownDiagnosis, "icd10_codes", "Not a code on the date of service: "+strings.Join(c.UnknownDiagnoses, ", ")+".")
	pc.addWarning(len(c.UncoveredDiagnoses) > 0, CodesNotCovered, "icd10_codes",
		"The code list of the date of service is not imported, and no other list has "+strings.Join(c.UncoveredDiagnoses, ", ")+".")
	pc.addError(len(c.Diagnoses) > 0 && icd10.IsExternalCause(c.Diagnoses[0]), ExternalCause, "icd10_codes", "An external cause cannot be the principal diagnosis.")
}

// isPastTimelyFiling reports that a calendar year has passed since the service. Source: 42 CFR 424.44(a)(1), one calendar year after the date of
// service (2010).
func isPastTimelyFiling(service, today string) bool {
	at, err := time.Parse(time.DateOnly, service)
	return err == nil && at.AddDate(1, 0, 0).Format(time.DateOnly) < today
}

// FirstClaimCheck is the preflight result of a patient's first claim, limited to what the patient's record can correct.
type FirstClaimCheck struct {
	Patient string
	PreflightResult
	// SelfPay means that there is no payer, SelfPayConfirmed that a user confirmed it.
	SelfPay, SelfPayConfirmed bool
}

// CheckFirstClaims runs the preflight of the first claims of patients, as of a day: one line of a code with a charge of one dollar and the
// patient's current record. For confirmed self-pay it returns only findings that apply to every patient. Source: docs/decisions/patients.md,
// "Enrollment".
func (d Loader) CheckFirstClaims(app core.App, ids []string, code, day string) ([]FirstClaimCheck, error) {
	facts, err := collections.PatientFactsByID(app, ids)
	if err != nil {
		return nil, err
	}
	entries := make([]*collections.BillingEntry, len(facts))
	for i, of := range facts {
		if entries[i], err = collections.ProspectiveEntry(app, of, code, day, oneDollarCents); err != nil {
			return nil, err
		}
	}
	list, err := d.Load(app, entries)
	if err != nil {
		return nil, err
	}
	prospects := make([]FirstClaimCheck, len(list))
	for i, claim := range list {
		prospects[i] = checkFirstClaim(claim, day)
	}
	return prospects, nil
}

const oneDollarCents = 100

// checkFirstClaim checks a patient without a payer as any payer would, so that nothing else is needed when a payer is added.
func checkFirstClaim(claim Claim, day string) FirstClaimCheck {
	p := FirstClaimCheck{Patient: claim.PatientID, PreflightResult: Preflight(claim, day), SelfPay: claim.SelfPay(), SelfPayConfirmed: claim.SelfPay() && claim.Coverage.SelfPay}
	if !p.SelfPay {
		return p
	}
	claim.Payer.ID, claim.Payer.EDI, claim.Payer.Filing = "any", "any", "any"
	for _, finding := range Preflight(claim, day).Errors {
		if strings.HasPrefix(finding.Field, "insurance.") || p.SelfPayConfirmed && finding.Code != MissingRendering && finding.Code != MissingDiagnosis {
			continue
		}
		p.Errors = append(p.Errors, finding)
	}
	return p
}
