package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/claims"
)

// SecondReviewer blocks the review of an entry by its creator if the practice requires another reviewer.
const SecondReviewer = "second_person"

// MaxMonthEndEntries bounds the entries of a month that one response checks.
const MaxMonthEndEntries = 2000

// MonthEndEntry is an unsent entry with the reasons against its next step: review or submission.
type MonthEndEntry struct {
	Entry *collections.BillingEntry
	Code  string // that a review would set
	// The counted and required days and minutes; nil if the code requires none.
	Days, DaysNeeded, Minutes, MinutesNeeded *int
	Reasons                                  []string // against the step
	Warnings                                 []string // that the step would set
	Preflight                                claims.PreflightResult
	SelfPay                                  bool
}

// Ready reports whether the next step is possible.
func (e MonthEndEntry) Ready() bool { return len(e.Reasons) == 0 }

// CheckMonthEnd checks a month's entries before review or submission as the step itself would, and changes nothing. Preflight errors block an
// entry if the practice sends claims from here. total is the number of such entries. Source: docs/decisions/billing.md, "Month's end".
func (e *Engine) CheckMonthEnd(app core.App, month Span, states []string, by audit.Actor, now time.Time) (list []MonthEndEntry, total int, err error) {
	entries, total, err := collections.EntriesOfMonth(app, states, month.Start, month.End, MaxMonthEndEntries)
	if err != nil || len(entries) == 0 {
		return nil, total, err
	}
	w := &monthEndCheck{Engine: e, app: app, by: by, now: now}
	if err := w.loadEntries(entries); err != nil {
		return nil, 0, err
	}
	list = make([]MonthEndEntry, len(entries))
	for i := range entries {
		if list[i], err = w.checkEntry(i); err != nil {
			return nil, 0, err
		}
	}
	return list, total, nil
}

// monthEndCheck is a check in progress; facts were loaded for all entries together.
type monthEndCheck struct {
	*Engine
	app           core.App
	by            audit.Actor
	now           time.Time
	recounts      []*recount
	documentation []documentation
	findings      []claims.PreflightResult
	selfPay       []bool
	toAttest      map[string]bool // patient ids
}

func (c *monthEndCheck) loadEntries(entries []*collections.BillingEntry) (err error) {
	ids := make([]string, len(entries))
	for i, entry := range entries {
		ids[i] = entry.PatientID()
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	patients, err := c.loadFacts(c.app, ids, "1900-01-01")
	if err != nil {
		return err
	}
	list := make([]claimedEntry, len(entries))
	for i, entry := range entries {
		f := patients[entry.PatientID()]
		if f == nil {
			f = &patientFacts{id: entry.PatientID(), deleted: true, entries: map[string][]existingEntry{}}
		}
		r := c.recountWithFacts(c.app, entry, f, c.now)
		if entry.Status() == PendingReview {
			if err := r.realignManualPeriod(); err != nil {
				return err
			}
		} else {
			r.isSubmitting, r.overrideReason = true, overrideFor(entry, CompetingService)
		}
		c.recounts, list[i] = append(c.recounts, r), r.claim
	}
	counts, err := c.countForDecision(c.app, patients, list)
	if err != nil {
		return err
	}
	for i, r := range c.recounts {
		r.actual, r.countedCode = counts[i], r.claim.code
	}
	if c.documentation, err = loadDocumentation(c.app, entries); err != nil {
		return err
	}
	if c.toAttest, err = collections.PatientsToAttest(c.app, ids); err != nil {
		return err
	}
	return c.runPreflight(entries)
}

func (c *monthEndCheck) runPreflight(entries []*collections.BillingEntry) error {
	forms, err := c.Claims.Load(c.app, entries)
	if err != nil {
		return err
	}
	today := c.Day(c.now)
	for _, form := range forms {
		c.findings, c.selfPay = append(c.findings, claims.Preflight(form, today)), append(c.selfPay, form.SelfPay())
	}
	return nil
}

func (c *monthEndCheck) checkEntry(i int) (MonthEndEntry, error) {
	r := c.recounts[i]
	x := MonthEndEntry{Entry: r.entry, Preflight: c.findings[i], SelfPay: c.selfPay[i]}
	reasons, err := c.stepBlockingReasons(r, c.documentation[i])
	if err != nil {
		return x, err
	}
	if c.Claims.Submitter.ID != "" && !x.Preflight.OK() {
		reasons = append(reasons, PreflightErrors)
	}
	x.Code, x.Reasons = r.claim.code, append([]string{}, reasons...)
	for _, warning := range keptWarnings(r.entry) {
		if warning != AttestInteraction {
			x.Warnings = append(x.Warnings, warning)
		}
	}
	if r.lacksOrder && !c.RequireOrder {
		x.Warnings = append(x.Warnings, MissingOrder)
	}
	rule := baseRule(r.claim.code, r.claim.service)
	switch {
	case rule.Period == ThirtyDays:
		x.Days, x.DaysNeeded = new(len(r.actual.days)), new(rule.MinDays)
	case rule.Category != "":
		x.Minutes, x.MinutesNeeded = new(r.actual.minutes), new(r.claim.neededMinutes(rule))
	}
	return x, nil
}

// stepBlockingReasons returns the reasons against the next step of an entry.
func (c *monthEndCheck) stepBlockingReasons(r *recount, p documentation) (reasons []string, err error) {
	if r.entry.Status() != PendingReview {
		if err := r.compareWithOthers(false); err != nil {
			return nil, err
		}
		if reasons, err = r.reasonsGiven(p); err == nil && c.toAttest[r.claim.patient] {
			return r.addUnattested(reasons)
		}
		return reasons, err
	}
	if c.needsSecondReviewer(r.entry, c.by) {
		reasons = append(reasons, SecondReviewer)
	}
	r.upgradeCode()
	twice, against, err := r.reviewBlockingReasons("", func() ([]string, error) { return r.reasonsGiven(p) })
	if err != nil {
		return nil, err
	}
	if reasons = append(reasons, against...); c.toAttest[r.claim.patient] {
		if reasons, err = r.addUnattested(reasons); err != nil {
			return nil, err
		}
	}
	if twice {
		reasons = append(reasons, PossibleDuplicate)
	}
	return reasons, nil
}

// addUnattested adds a reason if some of an entry's minutes are not attested.
func (r *recount) addUnattested(reasons []string) ([]string, error) {
	open, err := r.unattestedTimes(r.tx, r.entry)
	if err == nil && len(open) > 0 {
		reasons = append(reasons, AttestInteraction)
	}
	return reasons, err
}
