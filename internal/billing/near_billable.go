package billing

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

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

// setReachableByMinutes says which codes a month's minutes have come to, and can still come to: a month has room for all of them until it is over.
func (e *Engine) setReachableByMinutes(n *NearCode, day string) {
	n.Reachable = []string{}
	for _, code := range []string{FirstTen, FirstTwenty, NextTwenty} {
		rule, ok := e.Rule(code, day)
		switch {
		case !ok:
		case n.Have >= rule.MinMinutes:
			n.Reached = &code
			if code == NextTwenty {
				n.Reachable = append(n.Reachable, code) // a further unit
			}
		default:
			n.Reachable = append(n.Reachable, code)
		}
	}
}

// setReachableByDays does so for the days of a period, of which each has room for one; where sixteen are out of reach, two may not be.
func (e *Engine) setReachableByDays(n *NearCode, day string) {
	n.Reachable = []string{}
	for _, code := range []string{ShortSupply, DeviceSupply} {
		rule, ok := e.Rule(code, day)
		switch {
		case !ok:
		case n.Have >= rule.MinDays:
			n.Reached = &code
		case n.Have+n.DaysLeft >= rule.MinDays:
			n.Reachable = append(n.Reachable, code)
		}
	}
	if len(n.Reachable) == 1 && n.Reachable[0] == ShortSupply {
		n.CPTCode, n.Needed = ShortSupply, baseRule(ShortSupply).MinDays
	}
}
