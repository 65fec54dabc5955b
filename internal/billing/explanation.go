package billing

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"
)

// Explanation is what was billed for a code and period, or what is missing.
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
	minutes, err := e.TimeSummary(app, month, "", patientID, "")
	if err != nil {
		return nil, err
	}
	sum := MonthTime{}
	if len(minutes) == 1 {
		sum = minutes[0]
	}
	times, err := e.loggedTime(app, []string{patientID}, month)
	if err != nil {
		return nil, err
	}
	over, counting := e.Day(now) > month.End, e.dropUncountedTime(f, times[patientID], month)
	_, left, _ := e.planMonthTime(f, times[patientID], month, over, false)
	for _, code := range []string{FirstTen, FirstTwenty, NextTwenty, Interpretation} {
		rule, ok := e.Rule(code, month.End)
		if !ok {
			continue
		}
		have := CountedSeconds(counting) / 60
		if code == Interpretation {
			have = sum.Interpretation
		}
		x := e.newExplanation(f, rule, month)
		x.Minutes, x.Needed = &have, &rule.MinMinutes
		if x.Billed && rule.Block > 0 {
			addNextUnit(&x, f.entryFor(code, month).Units, have, rule, e.MaxUnits99458)
		}
		for _, skip := range left {
			if skip.CPTCode == code {
				x.Reasons = append(x.Reasons, skip.Reason)
			}
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
	list = append(list, e.explainSetup(f, month, min(month.End, e.Day(now))))
	for i, p := range periods {
		for _, code := range []string{DeviceSupply, ShortSupply} {
			rule, ok := e.Rule(code, p.End)
			if !ok {
				continue
			}
			have := len(windows[i].days)
			x := e.newExplanation(f, rule, p)
			x.Days, x.DaysNeeded = &have, &rule.MinDays
			if !x.Billed && have > rule.MaxDays {
				x.Reasons = append(x.Reasons, "billed_as_"+rule.Instead)
			}
			if !x.Billed && p.End >= e.Day(now) {
				x.Reasons = append(x.Reasons, "period_not_complete")
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

// explainSetup explains 99453 for the episode of care of a day.
func (e *Engine) explainSetup(f *patientFacts, month Span, day string) Explanation {
	x := e.newExplanation(f, baseRule(Setup, day), Span{day, day})
	if x.PeriodStart, x.PeriodEnd = month.Start, month.End; x.Billed {
		return x
	}
	if _, isTaught := f.setupOf(day); !isTaught {
		x.Missing = append(x.Missing, "a recorded set-up")
	}
	if !f.wasSuppliedIn(day, []string{f.lastSupply}) {
		x.Missing = append(x.Missing, "a first 99454")
	}
	return x
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
