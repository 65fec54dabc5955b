package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"
)

// CalendarDay is a day of a month with its device data and minutes.
type CalendarDay struct {
	Day     string `json:"day"`
	Data    bool   `json:"data"`    // device data that counts
	Minutes int    `json:"minutes"` // counted minutes, on the day on which they began
}

// CalendarPeriod is a 30-day period that overlaps the month.
type CalendarPeriod struct {
	Start  string `json:"period_start"`
	End    string `json:"period_end"`
	Days   int    `json:"days"`
	Needed int    `json:"days_needed"`
}

// MonthCalendar returns a patient's month by day: the days with data that counts, and the time spent.
func (e *Engine) MonthCalendar(app core.App, patientID string, month Span, now time.Time) (days []CalendarDay, periods []CalendarPeriod, err error) {
	patients, err := e.loadFacts(app, []string{patientID}, month.Start)
	if err != nil {
		return nil, nil, err
	}
	f := patients[patientID]
	anchors, err := e.periodAnchors(app, patients)
	if err != nil {
		return nil, nil, err
	}
	here := append(periodsOfMonth(anchors[patientID], month, e.Day(now)), month)
	windows := make([]supplyPeriod, len(here))
	for i, p := range here {
		windows[i] = supplyPeriod{Patient: patientID, Start: p.Start, End: p.End}
	}
	if err := e.loadDataDays(app, patients, windows); err != nil {
		return nil, nil, err
	}
	ofMonth := windows[len(windows)-1].days
	for _, w := range windows[:len(windows)-1] {
		periods = append(periods, CalendarPeriod{w.Start, w.End, len(w.days), baseRule(DeviceSupply, w.End).MinDays})
	}
	times, err := e.loggedTime(app, []string{patientID}, month)
	if err != nil {
		return nil, nil, err
	}
	counting := e.dropUncountedTime(f, times[patientID], month)
	setCounted(counting)
	spent := map[string]time.Duration{}
	for _, s := range counting {
		spent[e.Day(s.StartedAt)] += s.counted
	}
	for day := month.Start; day <= month.End; day = AddDays(day, 1) {
		days = append(days, CalendarDay{day, slices.Contains(ofMonth, day), int(spent[day] / time.Minute)})
	}
	return days, periods, nil
}
