package billing

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// Explanation is what was billed for a code and period, or what is missing. Reasons are those against an entry that is not made, or against the next step of
// one that is.
type Explanation struct {
	CPTCode     string   `json:"cpt_code"`
	PeriodStart string   `json:"period_start"`
	PeriodEnd   string   `json:"period_end"`
	Billed      bool     `json:"billed"`
	EntryID     *string  `json:"entry_id"`
	Status      *string  `json:"status"`
	Days        *int     `json:"days"`
	DaysNeeded  *int     `json:"days_needed"`
	Minutes     *int     `json:"minutes"`
	Needed      *int     `json:"minutes_needed"`
	Reasons     []string `json:"reasons"`
	Missing     []string `json:"missing"`
}

// Explain explains every code for a patient and a month: the 30-day periods that end in the month or contain today, and the month's time.
func (e *Engine) Explain(app core.App, patientID string, month Span, now time.Time) (list []Explanation, err error) {
	patients, err := e.loadFacts(app, []string{patientID}, "1900-01-01")
	if err != nil {
		return nil, err
	}
	f := patients[patientID]
	if list, err = e.explainDevice(app, f, month, now); err != nil {
		return nil, err
	}
	minutes, err := e.explainMinutes(app, f, month, now)
	if err != nil {
		return nil, err
	}
	list = append(list, minutes...)
	if err := e.explainEntries(app, list, now); err != nil {
		return nil, err
	}
	for i := range list {
		slices.Sort(list[i].Reasons)
		list[i].Reasons = slices.Compact(list[i].Reasons)
	}
	return list, nil
}

// explainMinutes explains the codes of a month's time.
func (e *Engine) explainMinutes(app core.App, f *patientFacts, month Span, now time.Time) (list []Explanation, err error) {
	times, err := e.loggedTime(app, []string{f.id}, month)
	if err != nil {
		return nil, err
	}
	over, counting := e.Day(now) > month.End, e.dropUncountedTime(f, times[f.id], month)
	due, left, _ := e.planMonthTime(f, times[f.id], month, over, false)
	interpreted := countedFacts{}
	if err := e.countInterpretation(app, f, month, e.timeRule(e.ruleNameOf(month, f.minutesRule())), &interpreted); err != nil {
		return nil, err
	}
	for _, code := range []string{FirstTen, FirstTwenty, NextTwenty, Interpretation} {
		rule, ok := e.Rule(code, month.End)
		if !ok {
			continue
		}
		have := CountedSeconds(counting) / 60
		if code == Interpretation {
			have = interpreted.minutes
		}
		x := e.newExplanation(f, rule, month)
		x.Minutes, x.Needed = &have, &rule.MinMinutes
		if x.Billed && rule.Block > 0 {
			addNextUnit(&x, f.entryFor(code, month).Units, have, rule, e.MaxUnits99458)
		}
		x.addPlanned(code, due, left)
		if !x.Billed && rule.MaxMinutes > 0 && have > rule.MaxMinutes {
			x.addAboveMaximum(f, rule, month, MinutesAboveMaximum)
		} else if !x.Billed && rule.MaxMinutes > 0 && have >= rule.MinMinutes && !over {
			x.Reasons = append(x.Reasons, periodNotComplete)
		}
		e.addMissing(&x, f, rule, min(month.End, e.Day(now)), have, 0)
		list = append(list, x)
	}
	return list, nil
}

// addNextUnit adds what the next unit of a billed code requires.
func addNextUnit(x *Explanation, units, have int, rule Rule, most int) {
	if next := rule.MinMinutes + units*rule.Block; units < most && have < next {
		x.Missing = append(x.Missing, plural(next-have, "more minute")+" for the next unit")
	}
}

func (e *Engine) explainDevice(app core.App, f *patientFacts, month Span, now time.Time) (list []Explanation, err error) {
	anchors, err := e.periodAnchors(app, map[string]*patientFacts{f.id: f})
	if err != nil {
		return nil, err
	}
	periods := periodsOfMonth(anchors[f.id], month, e.Day(now))
	windows := make([]supplyPeriod, len(periods))
	for i, p := range periods {
		windows[i] = supplyPeriod{Patient: f.id, Start: p.Start, End: p.End}
	}
	if err := e.loadDataDays(app, map[string]*patientFacts{f.id: f}, windows); err != nil {
		return nil, err
	}
	past := slices.DeleteFunc(slices.Clone(windows), func(w supplyPeriod) bool { return w.End >= e.Day(now) })
	list = append(list, e.explainSetup(f, past, month, min(month.End, e.Day(now))))
	for i, p := range periods {
		for _, code := range []string{DeviceSupply, ShortSupply} {
			rule, ok := e.Rule(code, p.End)
			if !ok {
				continue
			}
			have := len(windows[i].days)
			x := e.newExplanation(f, rule, p)
			x.Days, x.DaysNeeded = &have, &rule.MinDays
			isOver := p.End < e.Day(now)
			if isOver {
				due, left := e.draftDeviceEntries(f, windows[i:i+1], false)
				x.addPlanned(code, due, left)
			} else if !x.Billed {
				x.Reasons = append(x.Reasons, periodNotComplete)
			}
			switch {
			case x.Billed:
			case have > rule.MaxDays:
				x.addAboveMaximum(f, rule, p, DaysAboveMaximum)
			case code == ShortSupply && !f.takesShortSupply(f.payerID(), p.End):
				x.Reasons = append(x.Reasons, notOfPayer)
			case f.hasActiveEntry(rule.Instead, p):
				x.Reasons = append(x.Reasons, "billed_as_"+rule.Instead)
			}
			e.addMissing(&x, f, rule, min(p.End, e.Day(now)), 0, have)
			list = append(list, x)
		}
	}
	if len(periods) == 0 {
		x := e.newExplanation(f, baseRule(DeviceSupply, month.End), month)
		if !x.Billed {
			x.Missing = append(x.Missing, "a first reading of an assigned device")
		}
		list = append(list, x)
	}
	return list, nil
}

// Reasons of explanations only.
const (
	periodNotComplete = "period_not_complete"
	notOfPayer        = "not_taken_by_payer"
)

// addPlanned adds what the next run makes of a code: an entry, or a reason against one.
func (x *Explanation) addPlanned(code string, due []entryDraft, left []SkippedEntry) {
	for _, skip := range left {
		if skip.CPTCode == code {
			x.Reasons = append(x.Reasons, skip.Reason)
		}
	}
	if slices.ContainsFunc(due, func(d entryDraft) bool { return d.code == code }) {
		x.Reasons = append(x.Reasons, NotBilledYet)
	}
}

// addAboveMaximum adds why a code is not for the facts of its period: it is billed under the code for more, or not at all yet.
func (x *Explanation) addAboveMaximum(f *patientFacts, rule Rule, period Span, reason string) {
	if f.hasActiveEntry(rule.Instead, period) {
		reason = "billed_as_" + rule.Instead
	}
	x.Reasons = append(x.Reasons, reason)
}

// explainEntries adds the reasons of the entries: against the next step of an open one, why the facts no longer support a sent one, and why the payer
// denied it.
func (e *Engine) explainEntries(app core.App, list []Explanation, now time.Time) error {
	var ids []string
	for _, x := range list {
		if x.Billed {
			ids = append(ids, *x.EntryID)
		}
	}
	entries, err := collections.BillingEntriesByID(app, ids)
	if err != nil {
		return err
	}
	reasons := map[string][]string{}
	open := []*collections.BillingEntry{}
	for _, entry := range entries {
		switch status := entry.Status(); status {
		case PendingReview, Reviewed:
			open = append(open, entry)
		case Denied:
			reasons[entry.Id] = []string{"denied_" + entry.DenialCode()}
		case VoidRequested, RefundDue:
			reasons[entry.Id] = []string{status}
		default:
			if !entry.EvidenceChangedAt().IsZero() {
				reasons[entry.Id] = slices.DeleteFunc(entry.Warnings(), func(w string) bool { return w != EvidenceChanged && !slices.Contains(evidenceReasons, w) })
			}
		}
	}
	check := &monthEndCheck{Engine: e, app: app, by: audit.System(), now: now}
	if len(open) > 0 {
		if err := check.loadEntries(open); err != nil {
			return err
		}
	}
	for i, entry := range open {
		next, err := check.checkEntry(i)
		if err != nil {
			return err
		}
		reasons[entry.Id] = next.Reasons
	}
	for i, x := range list {
		if x.Billed {
			list[i].Reasons = append(x.Reasons, reasons[*x.EntryID]...)
		}
	}
	return nil
}

// explainSetup explains 99453 for the episode of care of a day, with the supply periods that are over.
func (e *Engine) explainSetup(f *patientFacts, past []supplyPeriod, month Span, day string) Explanation {
	x := e.newExplanation(f, baseRule(Setup, day), Span{day, day})
	if x.PeriodStart, x.PeriodEnd = month.Start, month.End; x.Billed {
		return x
	}
	if _, isTaught := f.setupOf(day); !isTaught {
		x.Missing = append(x.Missing, "a recorded set-up")
	}
	due, left := e.draftDeviceEntries(f, past, false)
	if x.addPlanned(Setup, due, left); len(x.Reasons) == 0 && len(x.Missing) == 0 || !f.isSupplied(day, due) {
		x.Missing = append(x.Missing, "a first 99454")
	}
	return x
}

// isSupplied reports whether a device supply is or will be billed in the episode of care of a day.
func (f *patientFacts) isSupplied(day string, due []entryDraft) bool {
	days := []string{}
	for _, code := range []string{DeviceSupply, ShortSupply} {
		for _, x := range f.entries[code] {
			if !IsUndone(x.Status) {
				days = append(days, x.End)
			}
		}
	}
	for _, d := range due {
		if d.code != Setup {
			days = append(days, d.service)
		}
	}
	return f.wasSuppliedIn(day, days)
}

// newExplanation returns an explanation with the existing entry, if there is one.
func (e *Engine) newExplanation(f *patientFacts, rule Rule, period Span) Explanation {
	x := Explanation{CPTCode: rule.Code, PeriodStart: period.Start, PeriodEnd: period.End, Reasons: []string{}, Missing: []string{}}
	entry := f.entryFor(rule.Code, period)
	if entry == nil {
		return x
	}
	x.EntryID, x.Status = &entry.ID, &entry.Status
	if x.Billed = !IsUndone(entry.Status); !x.Billed {
		x.Reasons = append(x.Reasons, entry.Status+"_before")
	}
	return x
}

// addMissing adds the missing days, minutes and documents.
func (e *Engine) addMissing(x *Explanation, f *patientFacts, rule Rule, day string, minutes, days int) {
	if x.Billed {
		return
	}
	if short := rule.MinDays - days; short > 0 {
		x.Missing = append(x.Missing, plural(short, "more day"))
	}
	if short := rule.MinMinutes - minutes; short > 0 {
		x.Missing = append(x.Missing, plural(short, "more minute"))
	}
	words := map[string]string{NotActive: "an active enrolment", MissingConsent: "no consent", MissingDiagnosis: "no diagnosis"}
	for _, item := range e.missingItems(f, day) {
		x.Missing = append(x.Missing, words[item])
	}
	if !rule.Automatic {
		x.Reasons = append(x.Reasons, "billed_by_hand_only")
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
