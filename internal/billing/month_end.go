package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/claims"
)

// SecondPerson stands against an entry whose maker wants to review it where the practice asks for somebody else.
const SecondPerson = "second_person"

// MostAtMonthEnd is how many entries of a month are weighed in one answer.
const MostAtMonthEnd = 2000

// Weighed is an entry that is still to be sent, with what stands against its next step: its review, or its way to the payer.
type Weighed struct {
	Entry *collections.BillingEntry
	Code  string // that a review would give it
	// What the facts come to, and what the code asks for; nil where it asks for none.
	Days, DaysNeeded, Minutes, MinutesNeeded *int
	Reasons                                  []string // for which the step is refused
	Warnings                                 []string // that it would be noted with
	Preflight                                claims.Findings
	SelfPay                                  bool
}

// Ready reports that nothing stands against the next step.
func (w Weighed) Ready() bool { return len(w.Reasons) == 0 }

// WeighMonth weighs the entries of a month that wait for their review or their way to a payer as the step itself would, and changes nothing. What a
// payer would refuse stands against them where claims are sent from here. total is how many there are.
// Source: docs/decisions/billing.md, "Month's end".
func (e *Engine) WeighMonth(app core.App, month Span, states []string, by audit.Actor, now time.Time) (list []Weighed, total int, err error) {
	entries, total, err := collections.EntriesOfMonth(app, states, month.Start, month.End, MostAtMonthEnd)
	if err != nil || len(entries) == 0 {
		return nil, total, err
	}
	w := &weighing{Engine: e, app: app, by: by, now: now}
	if err := w.gather(entries); err != nil {
		return nil, 0, err
	}
	list = make([]Weighed, len(entries))
	for i := range entries {
		if list[i], err = w.weigh(i); err != nil {
			return nil, 0, err
		}
	}
	return list, total, nil
}

// weighing is the weighing of some entries under way: what the rules ask was read for all of them together.
type weighing struct {
	*Engine
	app      core.App
	by       audit.Actor
	now      time.Time
	recounts []*recount
	papers   []papers
	found    []claims.Findings
	selfPay  []bool
	toAttest map[string]bool // patients
}

func (w *weighing) gather(entries []*collections.BillingEntry) (err error) {
	ids := make([]string, len(entries))
	for i, entry := range entries {
		ids[i] = entry.PatientID()
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	patients, err := w.load(w.app, ids, "1900-01-01")
	if err != nil {
		return err
	}
	list := make([]claimed, len(entries))
	for i, entry := range entries {
		f := patients[entry.PatientID()]
		if f == nil {
			f = &facts{id: entry.PatientID(), deleted: true, entries: map[string][]existing{}}
		}
		r := w.recountOf(w.app, entry, f, w.now)
		if entry.Status() == PendingReview {
			if err := r.replace(); err != nil {
				return err
			}
		} else {
			r.leaving, r.reason = true, overridden(entry, CompetingService)
		}
		w.recounts, list[i] = append(w.recounts, r), r.claim
	}
	counts, err := w.countWhole(w.app, patients, list)
	if err != nil {
		return err
	}
	for i, r := range w.recounts {
		r.found, r.counted = counts[i], r.claim.code
	}
	if w.papers, err = readPapers(w.app, entries); err != nil {
		return err
	}
	if w.toAttest, err = collections.PatientsToAttest(w.app, ids); err != nil {
		return err
	}
	return w.preflightAll(entries)
}

func (w *weighing) preflightAll(entries []*collections.BillingEntry) error {
	forms, err := w.Claims.Load(w.app, entries)
	if err != nil {
		return err
	}
	today := w.Day(w.now)
	for _, form := range forms {
		w.found, w.selfPay = append(w.found, claims.Preflight(form, today)), append(w.selfPay, form.SelfPay())
	}
	return nil
}

func (w *weighing) weigh(i int) (Weighed, error) {
	r := w.recounts[i]
	x := Weighed{Entry: r.entry, Preflight: w.found[i], SelfPay: w.selfPay[i]}
	reasons, err := w.againstStep(r, w.papers[i])
	if err != nil {
		return x, err
	}
	if w.Claims.Submitter.ID != "" && !x.Preflight.OK() {
		reasons = append(reasons, PreflightErrors)
	}
	x.Code, x.Reasons = r.claim.code, append([]string{}, reasons...)
	for _, warning := range staying(r.entry) {
		if warning != AttestInteraction {
			x.Warnings = append(x.Warnings, warning)
		}
	}
	if r.unordered && !w.RequireOrder {
		x.Warnings = append(x.Warnings, MissingOrder)
	}
	rule := w.ruleFor(r.claim.code, r.claim.service)
	switch {
	case rule.Period == ThirtyDays:
		x.Days, x.DaysNeeded = new(len(r.found.days)), new(rule.MinDays)
	case rule.Category != "":
		x.Minutes, x.MinutesNeeded = new(r.found.minutes), new(r.claim.needs(rule))
	}
	return x, nil
}

// againstStep is all for which the next step of an entry is refused.
func (w *weighing) againstStep(r *recount, p papers) (reasons []string, err error) {
	if r.entry.Status() != PendingReview {
		if reasons, err = r.weigh(p); err == nil && w.toAttest[r.claim.patient] {
			return r.notAttested(reasons)
		}
		return reasons, err
	}
	if w.wantsAnother(r.entry, w.by) {
		reasons = append(reasons, SecondPerson)
	}
	r.grow()
	twice, against, err := r.againstReview("", func() ([]string, error) { return r.weigh(p) })
	if err != nil {
		return nil, err
	}
	if reasons = append(reasons, against...); w.toAttest[r.claim.patient] {
		if reasons, err = r.notAttested(reasons); err != nil {
			return nil, err
		}
	}
	if twice {
		reasons = append(reasons, PossibleDuplicate)
	}
	return reasons, nil
}

// notAttested adds that nobody has vouched for some of an entry's minutes.
func (r *recount) notAttested(reasons []string) ([]string, error) {
	open, err := r.unattested(r.tx, r.entry)
	if err == nil && len(open) > 0 {
		reasons = append(reasons, AttestInteraction)
	}
	return reasons, err
}
