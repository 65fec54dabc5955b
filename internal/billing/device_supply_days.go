package billing

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// DataDays are the days with data of a 30-day period, as billing counts them. If no period contains the requested day, they are the days of its
// calendar month and count toward no code. Source: docs/decisions/billing.md, "Data days".
type DataDays struct {
	Today      string // in the patient's zone
	Zone       *time.Location
	Start, End string
	// InPeriod reports whether the days are those of a supply period and count toward its codes.
	InPeriod bool
	// Days count. WithoutConsent have device data but no consent. Manual have readings that no device sent.
	Days, WithoutConsent, Manual []string
	Needed                       int
	DaysLeft                     int // including today; 0 if the period is over or there is none
	// Reached is the code that the days support, nil for none; Reachable the codes that they can still support.
	Reached   *string
	Reachable []string
}

// DataDays counts the days of the period that contains a day; "" for today in the patient's zone.
func (e *Engine) DataDays(app core.App, patientID, day string, now time.Time) (d DataDays, err error) {
	patients, err := e.loadFacts(app, []string{patientID}, "9999-12-31") // without entries
	if err != nil {
		return d, err
	}
	f := patients[patientID]
	d = DataDays{Today: f.zones.Day(now), Zone: f.zones.Present, Reachable: []string{}}
	if day == "" {
		day = d.Today
	}
	anchors, err := e.periodAnchors(app, patients)
	if err != nil {
		return d, err
	}
	span, found := periodOfDay(anchors[patientID], day)
	if d.InPeriod = found; !found {
		span = monthOf(day)
	}
	d.Start, d.End, d.Needed = span.Start, span.End, baseRule(DeviceSupply, span.End).MinDays
	windows := []supplyPeriod{{Patient: patientID, Start: span.Start, End: span.End}}
	if err := e.loadDataDays(app, nil, windows); err != nil { // all days; consent is applied below
		return d, err
	}
	transmitted := slices.Clone(windows[0].days)
	f.dropUnmonitoredDays(&windows[0])
	all := slices.Clone(windows[0].days)
	e.dropUnconsentedDays(f, &windows[0])
	d.Days, d.WithoutConsent = windows[0].days, daysExcept(all, windows[0].days)
	if d.Manual, err = e.manualDays(app, patientID, span, transmitted); err != nil || !found {
		return d, err
	}
	if d.Start <= d.Today && d.Today <= d.End {
		d.DaysLeft = DaysBetween(d.Today, d.End) + 1
	}
	d.setReachable(e, f)
	return d, nil
}

// setReachable sets the codes by the rule of the near-billable list. If today already has data, it cannot add another day.
func (d *DataDays) setReachable(e *Engine, f *patientFacts) {
	left := d.DaysLeft
	if left > 0 && slices.Contains(d.Days, d.Today) {
		left--
	}
	near := NearCode{Have: len(d.Days), DaysLeft: left, Needed: d.Needed}
	e.setReachableByDays(f, &near, d.End)
	d.Reached, d.Reachable = near.Reached, near.Reachable
}

// manualDays returns the days with readings but none from a device that the patient held.
func (e *Engine) manualDays(app core.App, patientID string, in Span, transmitted []string) (days []string, err error) {
	rows, err := collections.ReadingDays(app, patientID, in.Start, in.End)
	for _, row := range rows {
		if row.Readings > 0 {
			days = append(days, row.Day)
		}
	}
	slices.Sort(days)
	return daysExcept(slices.Compact(days), transmitted), err
}

// daysExcept returns the days that are not among others.
func daysExcept(days, others []string) []string {
	return slices.DeleteFunc(slices.Clone(days), func(day string) bool { return slices.Contains(others, day) })
}

// loadDataDays loads, for each period, the days with data that count.
func (e *Engine) loadDataDays(app core.App, patients map[string]*patientFacts, windows []supplyPeriod) error {
	if len(windows) == 0 {
		return nil
	}
	list, err := json.Marshal(windows)
	if err != nil {
		return fmt.Errorf("encode periods: %w", err)
	}
	rows, err := collections.DaysInWindows(app, string(list))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Days != "" {
			windows[row.Key].days = strings.Split(row.Days, ",")
			slices.Sort(windows[row.Key].days) // usually sorted already
			if f := patients[windows[row.Key].Patient]; f != nil {
				f.dropUnmonitoredDays(&windows[row.Key])
				e.dropUnconsentedDays(f, &windows[row.Key])
			}
		}
	}
	return nil
}

// dropUnmonitoredDays removes the days of a period after a death, which are of another person, after the end of monitoring, and in an interruption.
func (f *patientFacts) dropUnmonitoredDays(w *supplyPeriod) {
	w.days = slices.DeleteFunc(w.days, func(day string) bool { return f.died != "" && day > f.died || !f.monitoredOn(day) })
}

// dropUnconsentedDays removes the days of a period that consent does not cover.
func (e *Engine) dropUnconsentedDays(f *patientFacts, w *supplyPeriod) {
	period := Span{w.Start, w.End}
	if f.hasConsentThroughout(period) {
		return
	}
	counts := e.consentedDays(f, period)
	w.unconsentedDays = len(w.days)
	w.days = slices.DeleteFunc(w.days, func(day string) bool { return !counts(day) })
	w.unconsentedDays -= len(w.days)
}

// mostDataDays returns, by patient, the days with data of the month's period that has the most.
func (e *Engine) mostDataDays(app core.App, patients map[string]*patientFacts, month Span, today string) (map[string]int, error) {
	anchors, err := e.periodAnchors(app, patients)
	if err != nil {
		return nil, err
	}
	var windows []supplyPeriod
	for id, found := range anchors {
		for _, p := range periodsOfMonth(found, month, today) {
			windows = append(windows, supplyPeriod{Patient: id, Start: p.Start, End: p.End})
		}
	}
	if err := e.loadDataDays(app, patients, windows); err != nil {
		return nil, err
	}
	days := map[string]int{}
	for _, w := range windows {
		days[w.Patient] = max(days[w.Patient], len(w.days))
	}
	return days, nil
}
