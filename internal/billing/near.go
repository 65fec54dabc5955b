package billing

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Near is a patient who is close to a code.
type Near struct {
	PatientID   string `json:"patient_id"`
	CPTCode     string `json:"cpt_code"`
	PeriodStart string `json:"period_start"`
	PeriodEnd   string `json:"period_end"`
	Unit        string `json:"unit"` // days or minutes
	Have        int    `json:"have"`
	Needed      int    `json:"needed"`
	DaysLeft    int    `json:"days_left"` // of the period, today included
}

// Missing is how much is still to come.
func (n Near) Missing() int { return n.Needed - n.Have }

// NearBillable lists the patients closest to a code of the running periods, the least missing first: no more than limit. include narrows it
// to some patients; nil takes all.
func (e *Engine) NearBillable(app core.App, now time.Time, include func(patientID string) bool, limit int) (list []Near, err error) {
	if list, err = e.nearTime(app, now, include); err != nil {
		return nil, err
	}
	days, err := e.nearDays(app, now, include)
	if err != nil {
		return nil, err
	}
	list = append(list, days...)
	slices.SortFunc(list, byMissing)
	return list[:min(limit, len(list))], nil
}

func byMissing(a, b Near) int {
	return cmp.Or(cmp.Compare(a.Missing(), b.Missing()), cmp.Compare(a.DaysLeft, b.DaysLeft), cmp.Compare(a.PatientID, b.PatientID), cmp.Compare(a.CPTCode, b.CPTCode))
}

// nearTime are those who have interactive time this month and are under the next threshold.
func (e *Engine) nearTime(app core.App, now time.Time, include func(string) bool) (list []Near, err error) {
	today := e.Day(now)
	month := monthOf(today)
	from, to := e.instants(month)
	rows, err := collections.InteractiveMinutes(app, from, to)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		next := e.nextThreshold(row.Minutes)
		if next == nil || include != nil && !include(row.Patient) {
			continue
		}
		n := Near{PatientID: row.Patient, CPTCode: FirstTwenty, PeriodStart: month.Start, PeriodEnd: month.End, Unit: "minutes", Have: row.Minutes, Needed: *next}
		if n.Needed > ruleOf(FirstTwenty).MinMinutes {
			n.CPTCode = NextTwenty
		}
		n.DaysLeft = DaysBetween(today, month.End) + 1
		list = append(list, n)
	}
	return list, nil
}

// nearDays are those whose running 30 days can still come to 16 days with data.
func (e *Engine) nearDays(app core.App, now time.Time, include func(string) bool) (list []Near, err error) {
	today := e.Day(now)
	for after := ""; ; {
		ids, err := collections.PatientsWithDevices(app, true, after, chunk)
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
		near, err := e.nearDaysOf(app, ids, today)
		if err != nil {
			return nil, err
		}
		list = append(list, near...)
	}
}

func (e *Engine) nearDaysOf(app core.App, ids []string, today string) (list []Near, err error) {
	patients, err := e.load(app, ids, today)
	if err != nil {
		return nil, err
	}
	anchors, err := e.anchors(app, patients)
	if err != nil {
		return nil, err
	}
	var windows []window
	for id, found := range anchors {
		if p, ok := periodWith(found[len(found)-1], today); ok && patients[id].activeOn(today) {
			windows = append(windows, window{Patient: id, Start: p.Start, End: p.End})
		}
	}
	if err := fill(app, windows); err != nil {
		return nil, err
	}
	needed := ruleOf(DeviceSupply).MinDays
	for _, w := range windows {
		n := Near{
			PatientID: w.Patient, CPTCode: DeviceSupply, PeriodStart: w.Start, PeriodEnd: w.End, Unit: "days", Have: len(w.days), Needed: needed,
			DaysLeft: DaysBetween(today, w.End) + 1,
		}
		if 0 < n.Missing() && n.Missing() <= n.DaysLeft {
			list = append(list, n)
		}
	}
	return list, nil
}

// Still says in words what is missing: "2 more days".
func (n Near) Still() string { return plural(n.Missing(), "more "+n.Unit[:len(n.Unit)-1]) }
