package billing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// changesTime reports whether an entry is new, or its time, patient, user or category changed.
var changesTime = at("2026-04-01 09:30")

func (d *fixture) moves() map[string]billing.Transition {
	return map[string]billing.Transition{
		"review": d.e.Review(d.by, "Fine", "", false, changesTime), "return": d.e.ReturnToReview("Wait"), "submit": d.e.Submit("", time.Time{}, changesTime),
		"pay": d.e.Pay(billing.PaymentDraft{Amount: 4050, Date: "2026-04-01", Reference: "EFT-1", Payer: "primary", OverpaymentReason: "Paid in every state"}, d.by, changesTime), "deny": d.e.Deny("CO-16", "Lacks information", "2026-04-01", changesTime),
		"appeal": d.e.Appeal("It is covered", "A-1", "2026-04-01"), "void": d.e.Void("Twice", changesTime), "resubmit": d.e.Resubmit(billing.Corrections{}, "", changesTime),
	}
}

func (d *fixture) state(entry *collections.BillingEntry, state string) {
	d.exec("UPDATE billing_entries SET lifecycle_status = {:s} WHERE id = {:id}", dbx.Params{"s": state, "id": entry.Id})
}

// Each transition from each state leads to its target state, or is refused without effects.
func TestTransitions(t *testing.T) {
	leads := map[string]map[string]string{
		"review": {billing.PendingReview: billing.Reviewed},
		"return": {billing.Reviewed: billing.PendingReview},
		"submit": {billing.Reviewed: billing.Submitted},
		"pay": {
			billing.Submitted: billing.Paid, billing.Appealed: billing.Paid, billing.Paid: billing.Paid, billing.VoidRequested: billing.RefundDue,
			billing.RefundDue: billing.RefundDue,
		},
		"deny":     {billing.Submitted: billing.Denied, billing.Appealed: billing.Denied},
		"appeal":   {billing.Denied: billing.Appealed},
		"void":     {billing.PendingReview: billing.Voided, billing.Reviewed: billing.Voided, billing.VoidRequested: billing.Voided},
		"resubmit": {billing.Denied: billing.Submitted},
	}
	d := newFixture(t)
	entry := d.made(d.patient(talked("2026-01-14 09:00", 20)), billing.FirstTwenty, "2026-01-14", 20, "2026-01-15 09:00")
	told := func() (n int) { // counts the effects besides the entry
		if err := d.app.DB().NewQuery("SELECT (SELECT COUNT(*) FROM audit_log) + (SELECT COUNT(*) FROM announcements)").Row(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, state := range billing.States {
		d.state(entry, state)
		for name, move := range d.moves() {
			before := told()
			after, got := d.do(entry, move)
			stands := d.entry(entry.PatientID(), billing.FirstTwenty).Status()
			want, allowed := leads[name][state]
			switch {
			case move.Name != name:
				t.Errorf("%s calls itself %s", name, move.Name)
			case allowed && (got != "" || after.Status() != want || stands != want || told() == before):
				t.Errorf("%s from %s: %s, %s is stored, %q", name, state, after.Status(), stands, got)
			case !allowed && (got != "invalid_transition" || stands != state || told() != before):
				t.Errorf("%s from %s is %q", name, state, got)
			}
			if stands != state {
				d.state(entry, state)
			}
		}
	}
	_, err := d.e.ApplyTransition(d.app, collections.NewUUID(), d.moves()["review"], d.by, changesTime)
	d.want("unknown entry", refused(err), "not_found")
}

// The effects of each transition.
func TestTransitionEffects(t *testing.T) {
	d := newFixture(t)
	entry := d.made(d.patient(talked("2026-01-14 09:00", 25)), billing.FirstTwenty, "2026-01-14", 20, "2026-01-15 09:00")
	columns := func(names string) (list []string) {
		current, err := collections.FindBillingEntry(d.app, entry.Id)
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.FieldsSeq(names) {
			list = append(list, fmt.Sprint(current.Get(name)))
		}
		return list
	}
	stamp := collections.FormatInstant(changesTime)
	for _, step := range []struct {
		move  billing.Transition
		names string
		want  []string
	}{
		{d.moves()["review"], "reviewed_by reviewed_at updated_at", []string{"biller@vigil.test", stamp, stamp}},
		{d.moves()["return"], "reviewed_by reviewed_at", []string{"", ""}},
		{d.moves()["review"], "reviewed_by", []string{"biller@vigil.test"}},
		{d.moves()["submit"], "submission_reference original_reference submitted_at", []string{"SUB-20260401-093000", "SUB-20260401-093000", stamp}},
		{d.moves()["deny"], "denial_code denial_description denial_date", []string{"CO-16", "Lacks information", "2026-04-01"}},
		{
			d.e.Resubmit(billing.Corrections{ICD10Codes: []string{"I11.9"}, ServiceDate: "2026-01-13", Minutes: new(25), Notes: new("Corrected")}, "R-2", changesTime),
			"submission_reference original_reference claim_frequency_code resubmission_count icd10_codes service_date duration_minutes notes",
			[]string{"R-2", "SUB-20260401-093000", "7", "1", `["I11.9"]`, "2026-01-13", "25", "Corrected"},
		},
		{d.moves()["deny"], "denial_code", []string{"CO-16"}},
		{d.moves()["resubmit"], "resubmission_count icd10_codes service_date duration_minutes notes", []string{"2", `["I11.9"]`, "2026-01-13", "25", "Corrected"}},
		{d.moves()["deny"], "denial_code", []string{"CO-16"}},
		{d.moves()["appeal"], "appeal_reason appeal_reference appeal_date", []string{"It is covered", "A-1", "2026-04-01"}},
		{d.moves()["pay"], "payment_cents payment_date payment_reference", []string{"4050", "2026-04-01", "EFT-1"}},
	} {
		if _, got := d.do(entry, step.move); got != "" {
			t.Fatalf("%s: %s", step.move.Name, got)
		}
		if got := columns(step.names); !slices.Equal(got, step.want) {
			t.Errorf("%s writes %q, want %q", step.move.Name, got, step.want)
		}
	}
	d.state(entry, billing.Reviewed)
	if _, got := d.do(entry, d.e.Submit("BATCH-7", at("2026-03-31 17:00"), changesTime)); got != "" {
		t.Fatal(got)
	}
	if got := columns("submission_reference submitted_at"); !slices.Equal(got, []string{"BATCH-7", collections.FormatInstant(at("2026-03-31 17:00"))}) {
		t.Errorf("submitted as %q", got)
	}

	list, err := billing.EntryHistory(d.app, entry)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, e := range list {
		events = append(events, strings.TrimPrefix(e.Event, "billing."))
	}
	if got := strings.Join(events, " "); got != "create review return review submit deny resubmit deny resubmit deny appeal pay submit" {
		t.Errorf("the history is %s", got)
	}
}

// The reasons that block a review, and records added later that do not.
func TestReview(t *testing.T) {
	d := newFixture(t)
	review := func(entry *collections.BillingEntry, override string, attested bool) string {
		_, got := d.do(entry, d.e.Review(d.by, "", override, attested, changesTime))
		return got
	}
	patient := d.patient(withoutConsent, withoutDiagnosis, talked("2026-01-14 09:00", 20))
	entry := d.made(patient, billing.FirstTwenty, "2026-01-14", 20, "2026-01-15 09:00")
	d.want("without papers", review(entry, "", false), "invalid_state")
	d.consents(patient, "2026-01-14 23:00", "")
	d.want("without a diagnosis", review(entry, "", false), "invalid_state")
	d.exec(`UPDATE patients SET icd10_codes = '["I10","E11.9"]' WHERE id = {:p}`, dbx.Params{"p": patient})
	d.want("with both", review(entry, "", false), "")
	current := d.entry(patient, billing.FirstTwenty)
	if got := fmt.Sprint(current.ICD10Codes(), current.Warnings()); got != "[I10 E11.9] [missing_order]" {
		t.Errorf("reviewed with %s", got)
	}

	late := d.patient(withoutConsent, talked("2026-01-14 10:00", 20))
	entry = d.made(late, billing.FirstTwenty, "2026-01-14", 20, "2026-01-15 09:00")
	d.consents(late, "2026-01-15 00:00", "") // a day after the service
	d.want("with consent from the next day on", review(entry, "", false), "invalid_state")

	double := d.patient(talked("2026-01-14 11:00", 20))
	d.made(double, billing.FirstTwenty, "2026-01-14", 20, "2026-01-15 09:00")
	entry = d.made(double, billing.FirstTwenty, "2026-01-20", 20, "2026-01-21 09:00")
	d.want("a double without a reason", review(entry, "", false), "duplicate_entry")
	d.want("a double with one", review(entry, "Two providers", false), "duplicate_entry") // 99457 is billed once a month

	setup := d.patient(wears("2026-01-01", "", "2026-01-05", 16))
	entry = d.made(setup, billing.Setup, "2026-01-05", 0, "2026-01-06 09:00")
	d.want("no set-up on record", review(entry, "", false), "invalid_state")
	d.exec("UPDATE devices SET setup_completed_at = {:at} WHERE patient = {:p}", dbx.Params{"p": setup, "at": collections.FormatInstant(at("2026-01-05 10:00"))})
	d.want("recorded", review(entry, "", false), "")

	alone := d.made(d.patient(talked("2026-01-14 09:00", 40)), billing.NextTwenty, "2026-01-14", 20, "2026-01-15 09:00")
	if !slices.Contains(alone.Warnings(), billing.MissingPrimary) {
		t.Errorf("warned of %v", alone.Warnings())
	}
	d.want("the next twenty alone", review(alone, "", false), "invalid_state")
	d.want("no word lifts that", review(alone, "Really", true), "invalid_state")
}

// Elapsed time of an escalation is billed only after attestation, and time without a note not at all.
func TestReviewOfEscalationTime(t *testing.T) {
	d := newFixture(t)
	patient := d.patient(func(c *oracleCase) {
		c.times = append(c.times, oracleTime{at("2026-01-10 09:00"), 1200, "interactive", "escalation", true})
	})
	d.run(billing.TimeJob, "2026-01-20 09:00")
	entry := d.entry(patient, billing.FirstTwenty)
	if entry.Source() != billing.SourceEscalation || !slices.Equal(entry.Warnings(), []string{billing.AttestInteraction}) {
		t.Errorf("%s with %v", entry.Source(), entry.Warnings())
	}
	var told int
	if err := d.app.DB().NewQuery("SELECT COUNT(*) FROM announcements").Row(&told); err != nil || told == 0 {
		t.Errorf("%d were notified, %v", told, err)
	}
	for _, attested := range []bool{false, true} { // the biller cannot attest
		_, got := d.do(entry, d.e.Review(d.by, "", "", attested, changesTime))
		d.want("unattested", got, "not_author")
	}
	mine := audit.User(7, d.nurse.Email(), "nurse", audit.Origin{})
	d.want("unattested by the author", func() string { _, got := d.do(entry, d.e.Review(mine, "", "", false, changesTime)); return got }(), "invalid_state")
	d.attestAll(patient, mine)
	reviewed, got := d.do(entry, d.e.Review(d.by, "", "", false, changesTime))
	if got != "" || !slices.Equal(reviewed.Warnings(), []string{billing.MissingOrder}) || !reviewed.GetBool("attested") {
		t.Errorf("attested %v, %v, %s", reviewed.GetBool("attested"), reviewed.Warnings(), got)
	}
	d.exec("UPDATE billing_entries SET lifecycle_status = 'pending_review', warnings = '[\"missing_note\"]' WHERE id = {:id}", dbx.Params{"id": entry.Id})
	d.exec("UPDATE time_entries SET notes = '' WHERE patient = {:p}", dbx.Params{"p": patient})
	d.want("without a note", func() string { _, got := d.do(entry, d.e.Review(d.by, "", "", true, changesTime)); return got }(), "invalid_state")
	d.exec("UPDATE time_entries SET notes = 'sealed' WHERE patient = {:p}", dbx.Params{"p": patient})
	d.want("with one since", func() string { _, got := d.do(entry, d.e.Review(d.by, "", "", true, changesTime)); return got }(), "")
}

// With the second reviewer required, users cannot review entries that they created; any user may review the engine's.
func TestSecondReviewer(t *testing.T) {
	d := newFixture(t, func(s *billing.Settings) { s.RequireSecondReviewer = true })
	patient := d.patient(talked("2026-01-10 09:00", 20), talked("2026-02-10 09:00", 20))
	mine := d.made(patient, billing.FirstTwenty, "2026-01-14", 20, "2026-01-15 09:00")
	me, other := d.by, d.by
	me.Email, other.Email = "BILLER@vigil.test", "other@vigil.test"
	_, got := d.do(mine, d.e.Review(me, "", "", false, changesTime))
	d.want("own entry", got, "invalid_state")
	_, got = d.do(mine, d.e.Review(other, "", "", false, changesTime))
	d.want("another user's entry", got, "")
	d.run(billing.TimeJob, "2026-02-20 09:00")
	for _, x := range d.list(patient) {
		if x.Id != mine.Id {
			_, got = d.do(x, d.e.Review(me, "", "", false, changesTime))
			d.want("the engine's", got, "")
		}
	}
}

// Users who do billing are notified of a denial, once for each.
func TestDenialsNotifyBilling(t *testing.T) {
	d := newFixture(t)
	entry := d.made(d.patient(), billing.FirstTwenty, "2026-01-14", 20, "2026-01-15 09:00")
	told := func() (n int) {
		if err := d.app.DB().NewQuery("SELECT COUNT(*) FROM announcements").Row(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := told()
	for n := range 3 {
		d.state(entry, billing.Submitted)
		when := changesTime.Add(time.Duration(n) * time.Hour)
		if _, err := d.e.ApplyTransition(d.app, entry.Id, d.e.Deny("CO-16", "Lacks information", "2026-04-01", when), d.by, when); err != nil {
			t.Fatal(err)
		}
		if got := told() - before; got != n+1 {
			t.Errorf("after %d denials %d were notified", n+1, got)
		}
	}
}

// Internal and public states: two internal states are "pending" outside, and voided entries are listed only on request.
func TestPublicStates(t *testing.T) {
	for state, word := range map[string]string{
		billing.PendingReview: "pending", billing.Reviewed: "pending", billing.Submitted: "submitted", billing.Paid: "paid", billing.Denied: "denied",
		billing.Appealed: "appealed", billing.Voided: "voided",
	} {
		if got := billing.APIStatus(state); got != word {
			t.Errorf("%s is shown as %s", state, got)
		}
		if !slices.Contains(billing.StatesForFilter(word), state) || !slices.Equal(billing.StatesForFilter(state), []string{state}) {
			t.Errorf("%s means %v, %s %v", word, billing.StatesForFilter(word), state, billing.StatesForFilter(state))
		}
	}
	if all := billing.StatesForFilter(""); len(all) != len(billing.States)-1 || slices.Contains(all, billing.Voided) {
		t.Errorf("without a status %v", all)
	}
}

// The list applies each member of its filter, and all of them together.
func TestEntryFilter(t *testing.T) {
	d := newFixture(t)
	one, two := d.patient(talked("2026-02-10 09:00", 20)), d.patient(func(c *oracleCase) { c.payer = true })
	d.exec("INSERT INTO payers (id, name, payer_code, is_active) VALUES ('000000000000001', 'Acme', 'AC', TRUE)", nil)
	a := d.made(one, billing.FirstTwenty, "2026-01-14", 20, "2026-01-15 09:00")
	b := d.made(two, billing.FirstTwenty, "2026-01-20", 20, "2026-01-21 09:00")
	v := d.made(two, billing.NextTwenty, "2026-01-20", 20, "2026-01-21 09:00")
	d.run(billing.TimeJob, "2026-02-20 09:00")
	d.state(v, billing.Voided)
	d.state(b, billing.Reviewed)
	d.exec("UPDATE billing_entries SET rendering_provider = 'p1', created_by = 'else@vigil.test' WHERE id = {:id}", dbx.Params{"id": b.Id})
	names := map[string]string{a.Id: "a", b.Id: "b", v.Id: "v"}
	list := func(f collections.EntryFilter) string {
		if f.States == nil {
			f.States = billing.StatesForFilter("")
		}
		page, total, err := collections.PageOfBillingEntries(d.app, f, []string{"service_date", "cpt_code"}, 0, 50)
		if err != nil || total != len(page) {
			t.Fatalf("%d of %d: %v", len(page), total, err)
		}
		text := ""
		for _, x := range page {
			if name := names[x.Id]; name != "" {
				text += name
			} else {
				text += "e" // created by the engine
			}
		}
		return text
	}
	yes, no := true, false
	for name, test := range map[string]struct {
		f    collections.EntryFilter
		want string
	}{
		"all that stand":     {collections.EntryFilter{}, "abe"},
		"from a day on":      {collections.EntryFilter{From: "2026-01-20"}, "be"},
		"to a day":           {collections.EntryFilter{To: "2026-01-20"}, "ab"},
		"of one day":         {collections.EntryFilter{From: "2026-01-14", To: "2026-01-14"}, "a"},
		"pending":            {collections.EntryFilter{States: billing.StatesForFilter("pending")}, "abe"},
		"waiting for review": {collections.EntryFilter{States: billing.StatesForFilter(billing.PendingReview)}, "ae"},
		"voided":             {collections.EntryFilter{States: billing.StatesForFilter(billing.Voided)}, "v"},
		"a code":             {collections.EntryFilter{CPTCode: billing.NextTwenty}, ""},
		"a voided code":      {collections.EntryFilter{CPTCode: billing.NextTwenty, States: billing.StatesForFilter(billing.Voided)}, "v"},
		"a patient":          {collections.EntryFilter{PatientID: one}, "ae"},
		"a source":           {collections.EntryFilter{Source: billing.SourceTime}, "e"},
		"made by the engine": {collections.EntryFilter{AutoGenerated: &yes}, "e"},
		"made by hand":       {collections.EntryFilter{AutoGenerated: &no}, "ab"},
		"a payer":            {collections.EntryFilter{Payer: collections.NumberID(1)}, "b"},
		"no such payer":      {collections.EntryFilter{Payer: collections.NumberID(9)}, ""},
		"rendered by":        {collections.EntryFilter{Provider: "p1", ProviderEmail: "unknown@vigil.test"}, "b"},
		"made by":            {collections.EntryFilter{Provider: "p2", ProviderEmail: "biller@vigil.test"}, "a"},
		"of a care team":     {collections.EntryFilter{CareTeamOf: "p1"}, ""},
		"several at once":    {collections.EntryFilter{From: "2026-01-15", PatientID: one, AutoGenerated: &yes}, "e"},
	} {
		if got := list(test.f); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// The export returns every claim once, in the order of creation, for any number of pages.
func TestForEachClaim(t *testing.T) {
	d := newFixture(t)
	provider := vigiltest.User(t, d.app, "provider", vigiltest.With("first_name", "Ada"), vigiltest.With("last_name", "Byron"))
	nameless := vigiltest.User(t, d.app, "provider", vigiltest.With("first_name", ""), vigiltest.With("last_name", "Cher"))
	d.exec("INSERT INTO payers (id, name, payer_code, is_active) VALUES ('000000000000001', 'Acme', 'AC', TRUE)", nil)
	patient := d.patient()
	var drafts []collections.BillingDraft
	for i := range 1300 {
		b := collections.BillingDraft{
			ID: collections.NewUUID(), ClaimID: fmt.Sprint("C-", i), PatientID: patient, CPTCode: "99091", ServiceDate: "2026-01-14", Units: 1, AmountCents: int64(i), Source: billing.SourceManual,
			ICD10Codes: []string{"I10", "E11.9"}, Provider: provider.Id, PayerName: "Self-pay",
		}
		if i%10 == 0 {
			b.PayerID, b.PayerName, b.Provider = "000000000000001", "Acme", nameless.Id
		}
		drafts = append(drafts, b)
	}
	err := d.app.RunInTransaction(func(tx core.App) error {
		_, err := collections.InsertBillingEntries(tx, drafts, changesTime)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	d.exec("UPDATE billing_entries SET lifecycle_status = 'voided' WHERE id = {:id}", dbx.Params{"id": drafts[5].ID})
	each := func(states []string, payer string) (all []billing.ClaimRow, pages int) {
		err := d.e.ForEachClaim(t.Context(), d.app, states, payer, func(rows []billing.ClaimRow) error {
			all, pages = append(all, rows...), pages+1
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all, pages
	}
	all, pages := each([]string{billing.PendingReview}, "")
	if len(all) != 1299 || pages != 2 || !slices.IsSortedFunc(all, func(a, b billing.ClaimRow) int { return strings.Compare(a.ID, b.ID) }) {
		t.Fatalf("%d claims on %d pages", len(all), pages)
	}
	if x := all[1]; x.ClaimID != "C-1" || x.Amount() != 1 || x.Payer != "Self-pay" || x.PayerCode != "" || x.Provider != "Byron, Ada" || !slices.Equal(x.ICD10Codes(), []string{"I10", "E11.9"}) {
		t.Errorf("a claim is %+v", x)
	}
	if x := all[0]; x.PayerCode != "AC" || x.Provider != "Cher" {
		t.Errorf("an insured claim is %+v", x)
	}
	for what, test := range map[string]struct {
		states []string
		payer  string
		want   int
	}{
		"of a payer": {[]string{billing.PendingReview}, "000000000000001", 130}, "voided": {[]string{billing.Voided}, "", 1},
		"of both": {[]string{billing.Voided, billing.PendingReview}, "", 1300}, "of none": {[]string{billing.Paid}, "", 0}, "of no state": {nil, "", 0},
	} {
		if some, _ := each(test.states, test.payer); len(some) != test.want {
			t.Errorf("%s: %d claims", what, len(some))
		}
	}
	stop := fmt.Errorf("enough")
	visits := 0
	if err := d.e.ForEachClaim(t.Context(), d.app, []string{billing.PendingReview}, "", func([]billing.ClaimRow) error { visits++; return stop }); err != stop || visits != 1 { //nolint:errorlint // the same error value
		t.Errorf("after %d visits %v", visits, err)
	}
	if codes := (billing.ClaimRow{ICD10: "nonsense"}).ICD10Codes(); codes == nil || len(codes) != 0 {
		t.Errorf("codes of nonsense are %v", codes)
	}
}

// Validation of a manual entry.
func TestParseManualEntry(t *testing.T) {
	now := at("2026-01-15 20:30") // the 16th in Greenwich
	good := func() billing.ManualBody {
		return billing.ManualBody{
			PatientID: validate.Of(collections.NewUUID()), CPTCode: validate.Of("99457"), ServiceDate: validate.Of("2026-01-15"), Minutes: validate.Of(int64(20)),
			Notes: validate.Of("Talked\nlong"), ICD10Codes: texts(" e11.9", "I10"),
		}
	}
	read := func(e *billing.Engine, change func(*billing.ManualBody)) (billing.ManualDraft, string) {
		body, checks := good(), validate.NewChecks()
		change(&body)
		draft := e.ReadManual(body, checks, now)
		return draft, wrongFields(checks.Err())
	}
	draft, wrong := read(newEngine(), func(*billing.ManualBody) {})
	if wrong != "" || draft.CPTCode != "99457" || draft.ServiceDate != "2026-01-15" || draft.Minutes != 20 || draft.Notes.Reveal() != "Talked\nlong" ||
		!slices.Equal(draft.ICD10Codes, []string{"E11.9", "I10"}) {
		t.Errorf("%+v, %s", draft, wrong)
	}
	code := func(c string, minutes int64) func(*billing.ManualBody) {
		return func(b *billing.ManualBody) { b.CPTCode, b.Minutes = validate.Of(c), validate.Of(minutes) }
	}
	for name, test := range map[string]struct {
		change func(*billing.ManualBody)
		want   string
	}{
		"nothing":                 {func(b *billing.ManualBody) { *b = billing.ManualBody{} }, "cpt_code duration_minutes patient_id service_date"},
		"tomorrow":                {func(b *billing.ManualBody) { b.ServiceDate = validate.Of("2026-01-16") }, "service_date"},
		"no day":                  {func(b *billing.ManualBody) { b.ServiceDate = validate.Of("2026-02-30") }, "service_date"},
		"no code of ours":         {code("99490", 20), "cpt_code"},
		"a code that is off":      {code("99445", 0), "cpt_code"},
		"nineteen minutes":        {code("99457", 19), "duration_minutes"},
		"the next twenty, twenty": {code("99458", 20), ""},
		"the next twenty, less":   {code("99458", 19), "duration_minutes"},
		"thirty to interpret":     {code("99091", 30), ""},
		"twenty-nine":             {code("99091", 29), "duration_minutes"},
		"devices take no time":    {code("99454", 0), ""},
		"a day":                   {code("99457", 1440), ""},
		"more than a day":         {code("99457", 1441), "duration_minutes"},
		"less than nothing":       {code("99454", -1), "duration_minutes"},
		"no diagnosis code":       {func(b *billing.ManualBody) { b.ICD10Codes = texts("I10", "nonsense", "U071") }, "icd10_codes.1 icd10_codes.2"},
		"a dozen":                 {func(b *billing.ManualBody) { b.ICD10Codes = texts(slices.Repeat([]string{"I10"}, 12)...) }, ""},
		"more than a dozen":       {func(b *billing.ManualBody) { b.ICD10Codes = texts(slices.Repeat([]string{"I10"}, 13)...) }, "icd10_codes"},
		"no list":                 {func(b *billing.ManualBody) { _ = b.ICD10Codes.UnmarshalJSON([]byte(`"I10"`)) }, "icd10_codes"},
		"long notes":              {func(b *billing.ManualBody) { b.Notes = validate.Of(strings.Repeat("x", 4001)) }, "notes"},
	} {
		if _, wrong := read(newEngine(), test.change); wrong != test.want {
			t.Errorf("%s: %q is wrong, want %q", name, wrong, test.want)
		}
	}
	if draft, wrong := read(newEngine(), func(b *billing.ManualBody) { b.ICD10Codes = validate.Strings{} }); wrong != "" || draft.ICD10Codes != nil {
		t.Errorf("left out: %v %s", draft.ICD10Codes, wrong)
	}
	modern := billing.New(billing.Settings{Zone: newYork, MaxUnits99458: 3, Enable2026Codes: true})
	for day, want := range map[string]string{"2025-12-31": "cpt_code", "2026-01-01": ""} {
		if _, wrong := read(modern, func(b *billing.ManualBody) { code("99470", 10)(b); b.ServiceDate = validate.Of(day) }); wrong != want {
			t.Errorf("99470 on %s: %s", day, wrong)
		}
	}
}

// Patients are counted once a month for any number of entries, without voided ones.
func TestPatientsBilled(t *testing.T) {
	d := newFixture(t)
	one, two := d.patient(), d.patient()
	for _, day := range []string{"2026-01-10", "2026-01-31", "2026-02-01", "2026-03-31"} {
		d.made(one, billing.FirstTwenty, day, 20, "2026-04-01 12:00")
	}
	d.made(two, billing.FirstTwenty, "2026-02-28", 20, "2026-04-01 12:00")
	alone := d.made(two, billing.FirstTwenty, "2026-03-01", 20, "2026-04-01 12:00")
	if _, got := d.do(alone, d.e.Void("Wrong", changesTime)); got != "" {
		t.Fatal(got)
	}
	counts, err := billing.PatientsBilled(d.app, "2026-01", "2026-03")
	if got := fmt.Sprint(counts); err != nil || got != "map[2026-01:1 2026-02:2 2026-03:1]" {
		t.Errorf("counted %s, %v", got, err)
	}
	if counts, err = billing.PatientsBilled(d.app, "2026-02", "2026-02"); err != nil || fmt.Sprint(counts) != "map[2026-02:2]" {
		t.Errorf("of one month %v, %v", counts, err)
	}
}
