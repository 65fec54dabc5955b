package billing

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// EligibilityCheck is one condition of eligibility.
type EligibilityCheck struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// Eligibility says whether a patient may be billed for on a day, and what stands against it.
func (e *Engine) Eligibility(app core.App, patientID string, now time.Time) (eligible bool, checks []EligibilityCheck, err error) {
	patients, err := e.loadFacts(app, []string{patientID}, e.Day(now))
	if err != nil {
		return false, nil, err
	}
	f, today := patients[patientID], e.Day(now)
	against := e.missingItems(f, today)
	stands := func(item string) bool { return slices.Contains(against, item) }
	held := slices.ContainsFunc(f.assignments, func(h DeviceAssignment) bool { return h.Until == "" })
	add := func(name string, ok bool, yes, no string) {
		if ok {
			no = yes
		}
		checks = append(checks, EligibilityCheck{name, ok, no})
	}
	add("enrolment", !stands(NotActive), "The patient is active.", "The patient is archived.")
	add("consent", !stands(MissingConsent), "Consent to monitoring is in force, or is not asked for.", "No consent to monitoring is in force.")
	add("diagnosis", !stands(MissingDiagnosis), "A diagnosis is on record.", "No diagnosis is on record.")
	add("device", held, "A device is assigned.", "No device is assigned.")
	add("setup", f.setupDay != "", "The set-up was recorded.", "No set-up is recorded; 99453 cannot be billed.")
	return len(against) == 0, checks, nil
}

// Explanation says about one code and period what was billed, or what it would still take.
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

// Explain goes through every code for a patient and a month: the 30-day periods that end in it or hold today, and the month's time.
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
	stretches, err := e.loggedTime(app, []string{patientID}, month)
	if err != nil {
		return nil, err
	}
	over, counting := e.Day(now) > month.End, e.dropUnconsentedTime(f, stretches[patientID], month)
	_, left, _ := e.planMonthTime(f, stretches[patientID], month, over, false)
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

// addNextUnit says what the next unit of a billed code would take.
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
	setup := e.newExplanation(f, baseRule(Setup), month)
	if !setup.Billed && f.setupDay == "" {
		setup.Missing = append(setup.Missing, "a recorded set-up")
	}
	if !setup.Billed && f.lastSupply == "" {
		setup.Missing = append(setup.Missing, "a first 99454")
	}
	list = append(list, setup)
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
		x := e.newExplanation(f, baseRule(DeviceSupply), month)
		if !x.Billed {
			x.Missing = append(x.Missing, "a first reading of an assigned device")
		}
		list = append(list, x)
	}
	return list, nil
}

// newExplanation is an explanation with the entry that stands, if one does.
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

// addMissing adds what is missing in days, minutes and papers.
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

// NearCode is a patient who is close to a code.
type NearCode struct {
	PatientID   string `json:"patient_id"`
	CPTCode     string `json:"cpt_code"`
	PeriodStart string `json:"period_start"`
	PeriodEnd   string `json:"period_end"`
	Unit        string `json:"unit"` // days or minutes
	Have        int    `json:"have"`
	Needed      int    `json:"needed"`
	DaysLeft    int    `json:"days_left"` // of the period, today included
	// Reached is the code that the period has come to already, nil for none; Reachable those that it can still come to.
	Reached   *string  `json:"reached"`
	Reachable []string `json:"reachable"`
	// Today says that today has data already, so that of the days left it is no room for another.
	HasDataToday bool `json:"-"`
}

// Missing is how much is still to come.
func (n NearCode) Missing() int { return n.Needed - n.Have }

// NearBillable lists the patients closest to a code of the running periods, the least missing first: no more than limit. include narrows it
// to some patients; nil takes all.
func (e *Engine) NearBillable(app core.App, now time.Time, include func(patientID string) bool, limit int) (list []NearCode, err error) {
	if list, err = e.nearMinutes(app, now, include); err != nil {
		return nil, err
	}
	days, err := e.NearDeviceDays(app, now, include)
	if err != nil {
		return nil, err
	}
	list = append(list, days...)
	slices.SortFunc(list, byMissing)
	return list[:min(limit, len(list))], nil
}

func byMissing(a, b NearCode) int {
	return cmp.Or(cmp.Compare(a.Missing(), b.Missing()), cmp.Compare(a.DaysLeft, b.DaysLeft), cmp.Compare(a.PatientID, b.PatientID), cmp.Compare(a.CPTCode, b.CPTCode))
}

// nearMinutes are those who have interactive time this month and are under the next threshold.
func (e *Engine) nearMinutes(app core.App, now time.Time, include func(string) bool) (list []NearCode, err error) {
	today := e.Day(now)
	month := monthOf(today)
	from, to := e.instants(month)
	rows, err := collections.CountedMinutes(app, from, to, e.timeRuleOf(month))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		next := e.nextThreshold(row.Minutes)
		if next == nil || include != nil && !include(row.Patient) {
			continue
		}
		n := NearCode{PatientID: row.Patient, CPTCode: FirstTwenty, PeriodStart: month.Start, PeriodEnd: month.End, Unit: "minutes", Have: row.Minutes, Needed: *next}
		if n.Needed > baseRule(FirstTwenty).MinMinutes {
			n.CPTCode = NextTwenty
		}
		n.DaysLeft = DaysBetween(today, month.End) + 1
		e.setReachableByMinutes(&n, month.End)
		list = append(list, n)
	}
	return list, nil
}

// NearDeviceDays are those whose running 30 days can still come to 16 days with data.
func (e *Engine) NearDeviceDays(app core.App, now time.Time, include func(string) bool) (list []NearCode, err error) {
	today := e.Day(now)
	for after := ""; ; {
		ids, err := collections.PatientsWithDevices(app, true, after, chunkSize)
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			return list, nil
		}
		after = ids[len(ids)-1]
		if include != nil {
			ids = slices.DeleteFunc(ids, func(id string) bool { return !include(id) })
		}
		near, err := e.nearDeviceDaysOf(app, ids, today)
		if err != nil {
			return nil, err
		}
		list = append(list, near...)
	}
}

func (e *Engine) nearDeviceDaysOf(app core.App, ids []string, today string) (list []NearCode, err error) {
	patients, err := e.loadFacts(app, ids, today)
	if err != nil {
		return nil, err
	}
	anchors, err := e.periodAnchors(app, patients)
	if err != nil {
		return nil, err
	}
	var windows []supplyPeriod
	for id, found := range anchors {
		if p, ok := periodContaining(found[len(found)-1], today); ok && patients[id].activeOn(today) {
			windows = append(windows, supplyPeriod{Patient: id, Start: p.Start, End: p.End})
		}
	}
	if err := e.loadDataDays(app, patients, windows); err != nil {
		return nil, err
	}
	needed := baseRule(DeviceSupply).MinDays
	for _, w := range windows {
		n := NearCode{
			PatientID: w.Patient, CPTCode: DeviceSupply, PeriodStart: w.Start, PeriodEnd: w.End, Unit: "days", Have: len(w.days), Needed: needed,
			DaysLeft: DaysBetween(today, w.End) + 1, HasDataToday: slices.Contains(w.days, today),
		}
		if e.setReachableByDays(&n, w.End); 0 < n.Missing() && n.Missing() <= n.DaysLeft {
			list = append(list, n)
		}
	}
	return list, nil
}

// MissingText says in words what is missing: "2 more days".
func (n NearCode) MissingText() string { return plural(n.Missing(), "more "+n.Unit[:len(n.Unit)-1]) }
