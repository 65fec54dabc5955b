package billing_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The period, units and charge of a manual entry.
func TestManualEntries(t *testing.T) {
	d := newFixture(t)
	patient := d.patient(wears("2026-01-01", "", "2026-01-05", 40), taught("2026-01-02"))
	bare := d.patient()
	for name, test := range map[string]struct {
		patient, code, service string
		minutes                int
		want                   string // period, units, cents
	}{
		"a month":                   {patient, billing.FirstTwenty, "2026-02-28", 20, "2026-02-01 2026-02-28 1 4787"},
		"many minutes are one unit": {patient, billing.FirstTwenty, "2025-12-31", 300, "2025-12-01 2025-12-31 1 4787"},
		"a unit for each twenty":    {patient, billing.NextTwenty, "2026-02-28", 59, "2026-02-01 2026-02-28 2 7698"},
		"no more than three":        {patient, billing.NextTwenty, "2026-03-01", 300, "2026-03-01 2026-03-31 3 11547"},
		"the first thirty days":     {patient, billing.DeviceSupply, "2026-01-20", 0, "2026-01-05 2026-02-03 1 4302"},
		"the next thirty days":      {patient, billing.DeviceSupply, "2026-02-04", 0, "2026-02-04 2026-03-05 1 4302"},
		"before the first reading":  {patient, billing.DeviceSupply, "2026-01-04", 0, "2025-12-06 2026-01-04 1 4302"},
		"without any reading":       {bare, billing.DeviceSupply, "2026-01-30", 0, "2026-01-01 2026-01-30 1 4302"},
		"a set-up is of its day":    {bare, billing.Setup, "2026-01-30", 0, "2026-01-30 2026-01-30 1 1973"},
	} {
		entry := d.made(test.patient, test.code, test.service, test.minutes, "2026-03-10 12:00")
		got := fmt.Sprint(entry.PeriodStart(), " ", entry.PeriodEnd(), " ", entry.Units(), " ", entry.AmountCents())
		d.want(name, got, test.want)
		if entry.Source() != billing.SourceManual || entry.CreatedBy() != "biller@vigil.test" || entry.Minutes() != test.minutes || entry.Status() != billing.PendingReview {
			t.Errorf("%s: %s by %s", name, entry.Source(), entry.CreatedBy())
		}
	}
	first, second := d.list(bare)[0], d.list(bare)[1]
	if a, b := first.GetString("claim_id"), second.GetString("claim_id"); a == b || len(a) != len("CLM-2026-000001") || a[:9] != "CLM-2026-" {
		t.Errorf("claims %s and %s", a, b)
	}
}

// Doubts about a manual entry are warnings, not refusals.
func TestManualWarnings(t *testing.T) {
	d := newFixture(t, newCodes)
	d.exec("INSERT INTO icd10_codes (id, code, description) VALUES ('i10', 'I10', 'Hypertension') ON CONFLICT DO NOTHING", nil)
	provider := vigiltest.User(t, d.app, authz.Provider)
	for name, test := range map[string]struct {
		change    func(*oracleCase)
		before    string // a code that exists already
		code, day string
		want      string
	}{
		"nothing":                          {func(*oracleCase) {}, "", billing.FirstTwenty, "2026-01-20", "[]"},
		"the same month":                   {func(*oracleCase) {}, billing.FirstTwenty, billing.FirstTwenty, "2026-01-31", "[possible_duplicate]"},
		"another month":                    {func(*oracleCase) {}, billing.FirstTwenty, billing.FirstTwenty, "2026-02-01", "[]"},
		"of two only one":                  {func(*oracleCase) {}, billing.FirstTwenty, billing.FirstTen, "2026-01-31", "[possible_duplicate]"},
		"a second set-up, years later":     {taught("2026-01-02"), billing.Setup, billing.Setup, "2028-01-31", "[possible_duplicate]"},
		"no consent":                       {withoutConsent, "", billing.FirstTwenty, "2026-01-20", "[missing_consent]"},
		"no diagnosis":                     {withoutDiagnosis, "", billing.FirstTwenty, "2026-01-20", "[missing_diagnosis]"},
		"no set-up":                        {func(*oracleCase) {}, "", billing.Setup, "2026-01-20", "[missing_setup]"},
		"the next without the first":       {func(*oracleCase) {}, "", billing.NextTwenty, "2026-01-20", "[missing_primary_code]"},
		"the next with it":                 {func(*oracleCase) {}, billing.FirstTwenty, billing.NextTwenty, "2026-01-20", "[]"},
		"the next with last month's":       {func(*oracleCase) {}, billing.FirstTwenty, billing.NextTwenty, "2026-02-20", "[missing_primary_code]"},
		"interpretation beside management": {func(*oracleCase) {}, billing.FirstTwenty, billing.Interpretation, "2026-01-20", "[overlaps_99457]"},
		"on the day the patient came":      {func(*oracleCase) {}, "", billing.FirstTwenty, "2026-01-01", "[]"},
		"before the patient came":          {func(*oracleCase) {}, "", billing.FirstTwenty, "2025-12-31", "[before_enrolment]"},
	} {
		patient := d.patient(wears("2026-01-01", "", "2026-01-05", 1), test.change)
		d.exec("UPDATE patients SET created_at = {:at}, primary_provider = {:u} WHERE id = {:p}",
			dbx.Params{"at": collections.FormatInstant(at("2026-01-01 00:00")), "u": provider.Id, "p": patient})
		if test.before != "" {
			d.made(patient, test.before, "2026-01-10", 20, "2028-03-01 12:00")
		}
		minutes := 30
		if test.code == billing.FirstTen {
			minutes = 10
		}
		entry := d.made(patient, test.code, test.day, minutes, "2028-03-01 12:00")
		d.want(name, fmt.Sprint(entry.Warnings()), test.want)
	}
	patient := d.patient()
	entry, err := d.e.CreateManual(d.app, billing.ManualDraft{
		PatientID: patient, CPTCode: billing.FirstTwenty, ServiceDate: "2026-01-20", Minutes: 20, ICD10Codes: []string{"I10", "Q99.9", "Q99.8"}, Notes: "In person",
	}, d.by, at("2026-02-01 12:00"))
	if err != nil || !slices.Equal(entry.Warnings(), []string{billing.UnknownICD10}) || !slices.Equal(entry.ICD10Codes(), []string{"I10", "Q99.9", "Q99.8"}) || entry.Notes() != "In person" {
		t.Errorf("%v %v, %v", entry.Warnings(), entry.ICD10Codes(), err)
	}
	voided := d.made(patient, billing.FirstTwenty, "2026-02-01", 20, "2026-02-01 12:00")
	if _, got := d.do(voided, d.e.Void("Wrong", changesTime)); got != "" {
		t.Fatal(got)
	}
	d.want("what was voided", fmt.Sprint(d.made(patient, billing.FirstTwenty, "2026-02-02", 20, "2026-02-03 12:00").Warnings()), "[]")
}

func TestManualRefusals(t *testing.T) {
	d := newFixture(t)
	archived := d.patient(func(c *oracleCase) { c.archived = at("2026-01-10 12:00") })
	gone := d.patient()
	d.exec("UPDATE patients SET deleted_at = {:at} WHERE id = {:p}", dbx.Params{"at": collections.FormatInstant(at("2026-01-10 12:00")), "p": gone})
	before := vigiltest.RowCounts(t, d.app)
	for name, test := range map[string]struct{ patient, day, want string }{
		"unknown patient":          {collections.NewUUID(), "2026-01-09", "not_found"},
		"deleted":                  {gone, "2026-01-09", "not_found"},
		"after the patient's time": {archived, "2026-01-11", "invalid_state"},
	} {
		_, err := d.manual(test.patient, billing.FirstTwenty, test.day, 20, "2026-02-01 12:00")
		d.want(name, refused(err), test.want)
	}
	if added := vigiltest.RowsAdded(t, d.app, before); len(added) > 0 {
		t.Errorf("added %v", added)
	}
	d.made(archived, billing.FirstTwenty, "2026-01-10", 20, "2026-02-01 12:00") // the last day counts
	// for a restored patient, only the time between does not count
	d.exec("UPDATE patients SET active = TRUE, unarchived_at = {:at} WHERE id = {:p}", dbx.Params{"at": collections.FormatInstant(at("2026-01-20 12:00")), "p": archived})
	for day, want := range map[string]string{"2026-01-10": "", "2026-01-11": "invalid_state", "2026-01-19": "invalid_state", "2026-01-20": ""} {
		_, err := d.manual(archived, billing.FirstTwenty, day, 20, "2026-02-01 12:00")
		d.want("restored, "+day, refused(err), want)
	}
}

// Interpretation is billed under the author if a provider, else under the patient's provider; other codes always under the patient's provider.
func TestRenderingProvider(t *testing.T) {
	d := newFixture(t)
	own, author := vigiltest.User(t, d.app, authz.Provider), vigiltest.User(t, d.app, authz.Provider)
	as := func(user *collections.User) audit.Actor {
		return audit.User(user.Number(), user.Email(), user.Role(), audit.Origin{})
	}
	for name, test := range map[string]struct {
		primary string
		by      audit.Actor
		code    string
		want    string
		refused string
	}{
		"the author":                     {own.Id, as(author), billing.Interpretation, author.Id, ""},
		"author, no provider":            {"", as(author), billing.Interpretation, author.Id, ""},
		"the patient's":                  {own.Id, as(d.nurse), billing.Interpretation, own.Id, ""},
		"no provider":                    {"", as(d.nurse), billing.Interpretation, "", "validation_error"},
		"a nurse is the primary":         {d.nurse.Id, as(d.nurse), billing.Interpretation, "", "validation_error"},
		"unknown primary":                {"nobody", as(d.nurse), billing.Interpretation, "", "validation_error"},
		"management, whoever wrote":      {own.Id, as(author), billing.FirstTwenty, own.Id, ""},
		"management of a nurse's":        {d.nurse.Id, as(author), billing.FirstTwenty, d.nurse.Id, ""},
		"management, without a provider": {"", as(author), billing.FirstTwenty, "", ""},
	} {
		patient := d.patient()
		d.exec("UPDATE patients SET primary_provider = {:u} WHERE id = {:p}", dbx.Params{"u": test.primary, "p": patient})
		entry, err := d.e.CreateManual(d.app, billing.ManualDraft{PatientID: patient, CPTCode: test.code, ServiceDate: "2026-01-20", Minutes: 30}, test.by, at("2026-02-01 12:00"))
		d.want(name, refused(err), test.refused)
		if err == nil {
			d.want(name, entry.GetString("rendering_provider"), test.want)
		}
	}
}
