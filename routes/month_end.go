package routes

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// monthEndRows are the endpoints of a month's end.
func monthEndRows() []route {
	return []route{
		{http.MethodGet, "/billing/month-end/", authz.ReadBillingReports, ratelimit.User, (*api).readMonthEnd},
		{http.MethodGet, "/billing/minutes-rule/", authz.ReadBillingReports, ratelimit.User, (*api).compareMinutesRules},
		{http.MethodGet, "/billing/funnel/", authz.ReadBillingReports, ratelimit.User, (*api).readFunnel},
		{http.MethodPost, "/billing/entries/review/", authz.ManageBilling, ratelimit.User, (*api).reviewInBulk},
		{http.MethodGet, "/billing/calendar/{id}/", authz.ReadEligibility.Or(authz.ScopeBillingRead), ratelimit.User, withPatient((*api).readCalendar)},
	}
}

// The state of each required document of an entry.
const (
	factOK      = "ok"
	factMissing = "missing"
	factAdvised = "advised" // missing, and a warning only
	factSelfPay = "self_pay"
)

// factsView is the state of the documents that an entry needs.
type factsView struct {
	Consent   string `json:"consent"`
	Diagnosis string `json:"diagnosis"`
	Order     string `json:"order"`
	Provider  string `json:"provider"`
	Payer     string `json:"payer"`
}

// monthEndEntryView is an entry not yet sent, with the reasons that block its next step.
type monthEndEntryView struct {
	EntryID         string         `json:"entry_id"`
	ClaimID         string         `json:"claim_id"`
	PatientID       string         `json:"patient_id"`
	PatientName     string         `json:"patient_name"`
	MRN             string         `json:"mrn"`
	CPTCode         string         `json:"cpt_code"`
	BecomesCode     string         `json:"becomes_code"` // after review
	Units           int            `json:"units"`
	ServiceDate     string         `json:"service_date"`
	PeriodStart     string         `json:"billing_period_start"`
	PeriodEnd       string         `json:"billing_period_end"`
	LifecycleStatus string         `json:"lifecycle_status"`
	Source          string         `json:"source"`
	Amount          billing.Cents  `json:"amount"`
	Charge          billing.Cents  `json:"charge"`
	Payer           string         `json:"payer"`
	PayerID         *int64         `json:"payer_id"`
	Days            *int           `json:"days"`
	DaysNeeded      *int           `json:"days_needed"`
	Minutes         *int           `json:"minutes"`
	MinutesNeeded   *int           `json:"minutes_needed"`
	Facts           factsView      `json:"facts"`
	Ready           bool           `json:"ready"`
	Reasons         []string       `json:"reasons"`
	Warnings        []string       `json:"warnings"`
	Preflight       []claims.Issue `json:"preflight_errors"`
	InBatch         bool           `json:"in_batch"` // reviewed and ready for a batch
}

// monthEndView holds all entries of a month that are not yet sent.
type monthEndView struct {
	Month       string              `json:"month"`
	CheckedAt   string              `json:"checked_at"`
	SendsClaims bool                `json:"sends_claims"` // whether this service sends claims, so that preflight blocks entries
	Usage       string              `json:"usage"`
	Count       int                 `json:"count"`
	LeftOut     int                 `json:"left_out"` // entries beyond the limit of one answer
	Results     []monthEndEntryView `json:"results"`
}

// readMonthEnd checks all entries of a month that are not yet reviewed or sent.
func (a *api) readMonthEnd(c *web.Call) error {
	q := c.Query()
	month, status := a.monthIn(c, q, "month"), q.OneOf("status", billing.PendingReview, billing.Reviewed)
	if err := q.Err(); err != nil {
		return err
	}
	states := []string{billing.PendingReview, billing.Reviewed}
	if status != "" {
		states = []string{status}
	}
	list, total, err := a.Billing.CheckMonthEnd(c.App, month, states, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	names, err := patients.Names(c.App, distinct(list, func(w billing.MonthEndEntry) string { return w.Entry.PatientID() }))
	if err != nil {
		return err
	}
	answer := monthEndView{
		Month: month.Start[:len("2006-01")], CheckedAt: validate.FormatInstant(c.Now), SendsClaims: a.Billing.Claims.Submitter.ID != "",
		Usage: a.Billing.Claims.Submitter.Usage, Count: total, LeftOut: total - len(list),
		Results: web.Map(list, func(w billing.MonthEndEntry) monthEndEntryView {
			return viewMonthEndEntry(w, names[w.Entry.PatientID()])
		}),
	}
	return c.Respond(answer, recordShown(c, audit.ResourceBillingEntry, "", list, func(w billing.MonthEndEntry) string { return w.Entry.PatientID() }))
}

func viewMonthEndEntry(w billing.MonthEndEntry, who patients.Name) monthEndEntryView {
	entry := w.Entry
	return monthEndEntryView{
		EntryID: entry.Id, ClaimID: entry.ClaimID(), PatientID: entry.PatientID(), PatientName: who.FullName(), MRN: who.MRN, CPTCode: entry.CPTCode(),
		BecomesCode: w.Code, Units: entry.Units(), ServiceDate: entry.ServiceDate(), PeriodStart: entry.PeriodStart(), PeriodEnd: entry.PeriodEnd(),
		LifecycleStatus: entry.Status(), Source: entry.Source(), Amount: billing.Cents(entry.AmountCents()), Charge: billing.Cents(entry.ChargeCents()),
		Payer: entry.PayerName(), PayerID: numberOrNull(entry.PayerID()), Days: w.Days, DaysNeeded: w.DaysNeeded, Minutes: w.Minutes,
		MinutesNeeded: w.MinutesNeeded, Facts: viewFacts(w), Ready: w.Ready(), Reasons: w.Reasons, Warnings: append([]string{}, w.Warnings...),
		Preflight: append([]claims.Issue{}, w.Preflight.Errors...),
		InBatch:   entry.Status() == billing.Reviewed && w.Ready() && w.Preflight.OK() && !w.SelfPay,
	}
}

// viewFacts assigns the findings to the documents they concern.
func viewFacts(w billing.MonthEndEntry) factsView {
	fact := func(reason string, places ...string) string {
		found := slices.ContainsFunc(w.Preflight.Errors, func(f claims.Issue) bool {
			return slices.ContainsFunc(places, func(place string) bool { return strings.HasPrefix(f.Field, place) })
		})
		switch {
		case found || reason != "" && slices.Contains(w.Reasons, reason):
			return factMissing
		case reason != "" && slices.Contains(w.Warnings, reason):
			return factAdvised
		}
		return factOK
	}
	v := factsView{
		Consent: fact(billing.MissingConsent), Diagnosis: fact(billing.MissingDiagnosis, "icd10_codes"), Order: fact(billing.MissingOrder),
		Provider: fact(billing.MissingProvider, "rendering_provider_id", "users."), Payer: fact("", "insurance.", "payer."),
	}
	if w.SelfPay {
		v.Payer = factSelfPay
	}
	return v
}

// reviewInBulk reviews entries independently: a rejected entry does not block the others.
func (a *api) reviewInBulk(c *web.Call) error {
	var body struct {
		EntryIDs validate.Strings `json:"entry_ids"`
		Notes    validate.String  `json:"notes"`
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	checks := validate.NewChecks()
	notes := checks.Text("notes", body.Notes, validate.Optional(4000).Multiline())
	ids := readEntryIDs(checks, body.EntryIDs, maxBatch, false)
	if err := checks.Err(); err != nil {
		return err
	}
	details, reviewed, err := a.transitionEach(c, ids, billing.Reviewed, func() billing.Transition {
		return a.Billing.Review(c.Actor(), notes, "", false, c.Now)
	})
	return c.Respond(map[string]any{"reviewed": reviewed, "skipped": len(details) - reviewed, "details": details}, err)
}

// transitionEach applies a transition to each entry in a transaction of its own and returns the results.
func (a *api) transitionEach(c *web.Call, ids []string, done string, move func() billing.Transition) (details []transitionResult, moved int, err error) {
	details = []transitionResult{}
	seen := map[string]bool{}
	for _, id := range ids {
		result := transitionResult{ID: id, Status: "skipped", Reason: orNull("repeated")}
		if !seen[id] {
			_, err := a.Billing.ApplyTransition(c.App, id, move(), c.Actor(), c.Now)
			refused, isFault := errors.AsType[*fault.Error](err)
			if err == nil {
				result, moved = transitionResult{ID: id, Status: done}, moved+1
			} else if isFault && refused.Kind != fault.Internal {
				result.Reason = orNull(refused.Code)
				result.Warnings, _ = refused.Extra["warnings"].([]string)
			} else {
				return nil, 0, err
			}
		}
		seen[id] = true
		details = append(details, result)
	}
	return details, moved, nil
}

// stageView counts and sums the entries of a month in one status.
type stageView struct {
	LifecycleStatus       string        `json:"lifecycle_status"`
	Claims                int           `json:"claims"`
	Amount                billing.Cents `json:"amount"`
	Charge                billing.Cents `json:"charge"`
	Paid                  billing.Cents `json:"paid"`
	Adjusted              billing.Cents `json:"adjusted"`
	PatientResponsibility billing.Cents `json:"patient_responsibility"`
	Refunded              billing.Cents `json:"refunded"`
}

type monthTotals struct {
	Month    string        `json:"month"`
	Claims   int           `json:"claims"`
	Expected billing.Cents `json:"expected"`
	Paid     billing.Cents `json:"paid"`
}

type funnelView struct {
	Month    string         `json:"month"`
	AsOf     string         `json:"as_of"`
	DaysLeft int            `json:"days_left"` // days left in the month, including today; 0 once it has ended
	TimeZone string         `json:"time_zone"`
	Patients billing.Funnel `json:"patients"`
	Entries  []stageView    `json:"entries"`
	Before   monthTotals    `json:"month_before"`
}

// readFunnel shows the progress of a month: patients toward a billable code, and entries toward payment.
func (a *api) readFunnel(c *web.Call) error {
	q := c.Query()
	month := a.monthIn(c, q, "month")
	if err := q.Err(); err != nil {
		return err
	}
	found, asOf, err := a.Billing.MonthFunnel(c.App, month, c.Now)
	if err != nil {
		return err
	}
	stages, _, err := stagesOf(c, month)
	if err != nil {
		return err
	}
	last, _ := billing.MonthSpan(billing.AddDays(month.Start, -1)[:len("2006-01")])
	_, before, err := stagesOf(c, last)
	if err != nil {
		return err
	}
	left := 0
	if asOf >= month.Start && a.Billing.Day(c.Now) <= month.End {
		left = billing.DaysBetween(asOf, month.End) + 1
	}
	return c.OK(funnelView{month.Start[:len("2006-01")], asOf, left, a.Billing.Zone.String(), found, stages, before})
}

// stagesOf reads the sums of a month's entries from the report totals.
func stagesOf(c *web.Call, month billing.Span) (stages []stageView, all monthTotals, err error) {
	sums, err := billing.LoadTotals(c.App, billing.TotalsFilter{From: month.Start, To: month.End, WithMoney: true}, billing.ByStatus)
	if err != nil {
		return nil, all, err
	}
	all.Month = month.Start[:len("2006-01")]
	for _, state := range billing.States {
		v := stageView{LifecycleStatus: state}
		for _, s := range sums {
			if s.Status == state {
				v = stageView{state, s.Claims, s.Amount, s.Billed, s.Collected, s.Adjusted, s.PatientShare, s.Refunded}
			}
		}
		if stages = append(stages, v); state != billing.Voided {
			all.Claims, all.Expected, all.Paid = all.Claims+v.Claims, all.Expected+v.Amount, all.Paid+v.Paid
		}
	}
	return stages, all, nil
}

// readCalendar shows a patient's month day by day, and the billing periods that overlap it.
func (a *api) readCalendar(c *web.Call, patient *collections.Patient) error {
	q := c.Query()
	month := a.monthIn(c, q, "month")
	if err := q.Err(); err != nil {
		return err
	}
	days, periods, err := a.Billing.MonthCalendar(c.App, patient.Id, month, c.Now)
	if err != nil {
		return err
	}
	return c.Respond(map[string]any{
		"patient_id": patient.Id, "month": month.Start[:len("2006-01")], "time_zone": a.Billing.Zone.String(), "days": days,
		"periods": append([]billing.CalendarPeriod{}, periods...),
	}, c.RecordRead(audit.PatientRead, audit.ResourceExplanation, "", patient.Id))
}
