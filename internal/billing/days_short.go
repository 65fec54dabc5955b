package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// nearDeviceDays returns the patients who can still reach the first code of their days with data in the current 30-day period.
func (e *Engine) nearDeviceDays(app core.App, now time.Time, include func(string) bool) ([]NearCode, error) {
	list, err := e.DaysShort(app, now, include)
	return slices.DeleteFunc(list, func(n NearCode) bool { return n.DaysHeld > 0 }), err
}

// DaysShort returns the patients of [Engine.NearBillable] who lack days with data, and those who hold a device and have sent no reading yet: their period
// would begin today. Patients on hold are omitted, because no readings are expected of them.
func (e *Engine) DaysShort(app core.App, now time.Time, include func(string) bool) (list []NearCode, err error) {
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
		held, err := collections.HoldsInForce(app, ids, now)
		if err != nil {
			return nil, err
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { _, onHold := held[id]; return onHold })
		near, err := e.daysShortOf(app, ids, today)
		if err != nil {
			return nil, err
		}
		list = append(list, near...)
	}
}

func (e *Engine) daysShortOf(app core.App, ids []string, today string) (list []NearCode, err error) {
	patients, err := e.loadFacts(app, ids, today)
	if err != nil {
		return nil, err
	}
	tomorrow := AddDays(today, 1) // a patient archived today sends no more
	anchors, err := e.periodAnchors(app, patients)
	if err != nil {
		return nil, err
	}
	for id, f := range patients {
		if starts := supplyRunStarts(f.assignments); len(anchors[id]) == 0 && len(starts) > 0 && f.activeOn(tomorrow) {
			list = append(list, e.notStarted(id, f, starts[len(starts)-1], today))
		}
	}
	var windows []supplyPeriod
	for id, found := range anchors {
		if p, ok := periodContaining(found[len(found)-1], today); ok && patients[id].activeOn(tomorrow) {
			windows = append(windows, supplyPeriod{Patient: id, Start: p.Start, End: p.End})
		}
	}
	if err := e.loadDataDays(app, patients, windows); err != nil {
		return nil, err
	}
	for _, w := range windows {
		f := patients[w.Patient]
		code := e.firstSupplyCode(f, f.payerID(), w.End)
		n := NearCode{
			PatientID: w.Patient, CPTCode: code, PeriodStart: w.Start, PeriodEnd: w.End, Unit: "days", Have: len(w.days), Needed: baseRule(code, w.End).MinDays,
			DaysLeft: DaysBetween(today, w.End) + 1, HasDataToday: slices.Contains(w.days, today),
		}
		if e.setReachableByDays(f, &n, w.End); 0 < n.Missing() && n.Missing() <= n.DaysLeft {
			list = append(list, n)
		}
	}
	return list, nil
}

// notStarted returns the period of a patient with a device since a day and without any reading, as if it began today.
func (e *Engine) notStarted(id string, f *patientFacts, since, today string) NearCode {
	end := AddDays(today, periodDays-1)
	code := e.firstSupplyCode(f, f.payerID(), end)
	n := NearCode{
		PatientID: id, CPTCode: code, PeriodStart: today, PeriodEnd: end, Unit: "days", Needed: baseRule(code, end).MinDays, DaysLeft: periodDays,
		DaysHeld: max(DaysBetween(since, today), 0) + 1,
	}
	e.setReachableByDays(f, &n, end)
	return n
}
