package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Funnel is how far the patients of a month have come towards being billed for, as of a day of it.
// Source: docs/decisions/billing.md, "The month's funnel".
type Funnel struct {
	Enrolled  int `json:"enrolled"`
	Consented int `json:"consented"`
	Eligible  int `json:"eligible"`  // nothing stands against billing them
	WithData  int `json:"with_data"` // a day of a device at least in a period of the month
	Days16    int `json:"days_16_or_more"`
	Days2     int `json:"days_2_to_15"`
	Minutes20 int `json:"minutes_20_or_more"`
	Minutes10 int `json:"minutes_10_to_19"`
}

// MonthFunnel counts patients as of the last day of a month, or today while it runs. A patient's days are those of the 30-day period that has most of them,
// among those that end in the month and the one that runs on the day.
func (e *Engine) MonthFunnel(app core.App, month Span, now time.Time) (f Funnel, asOf string, err error) {
	asOf = min(month.End, e.Day(now))
	from, to := e.instants(month)
	rows, err := collections.CountedMinutes(app, from, to, e.timeRuleOf(month))
	if err != nil {
		return f, asOf, err
	}
	minutes := map[string]int{}
	for _, row := range rows {
		minutes[row.Patient] = row.Minutes
	}
	for after := ""; ; {
		ids, err := collections.EnrolledSince(app, from, after, chunkSize)
		if err != nil || len(ids) == 0 {
			return f, asOf, err
		}
		after = ids[len(ids)-1]
		if err := e.countFunnel(app, &f, ids, minutes, month, asOf, e.Day(now)); err != nil {
			return f, asOf, err
		}
	}
}

func (e *Engine) countFunnel(app core.App, sum *Funnel, ids []string, minutes map[string]int, month Span, asOf, today string) error {
	patients, err := e.loadFacts(app, ids, month.Start)
	if err != nil {
		return err
	}
	days, err := e.mostDataDays(app, patients, month, today)
	if err != nil {
		return err
	}
	for id, f := range patients {
		if !f.activeOn(asOf) {
			continue
		}
		against := e.missingItems(f, asOf)
		sum.Enrolled++
		sum.Consented += boolToInt(!slices.Contains(against, MissingConsent))
		sum.Eligible += boolToInt(len(against) == 0)
		sum.WithData += boolToInt(days[id] > 0)
		sum.Days16 += boolToInt(days[id] >= baseRule(DeviceSupply).MinDays)
		sum.Days2 += boolToInt(days[id] >= baseRule(ShortSupply).MinDays && days[id] < baseRule(DeviceSupply).MinDays)
		sum.Minutes20 += boolToInt(minutes[id] >= baseRule(FirstTwenty).MinMinutes)
		sum.Minutes10 += boolToInt(minutes[id] >= baseRule(FirstTen).MinMinutes && minutes[id] < baseRule(FirstTwenty).MinMinutes)
	}
	return nil
}

func boolToInt(holds bool) int {
	if holds {
		return 1
	}
	return 0
}

// mostDataDays are, by patient, the days with data of the period of a month that has most of them.
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

// periodsOfMonth are a patient's periods that end in a month, and the one that runs today if that is a day of it.
func periodsOfMonth(anchors []string, month Span, today string) []Span {
	periods := periodsEndingIn(anchors, month)
	if len(anchors) > 0 && month.contains(today) {
		if p, ok := periodContaining(anchors[len(anchors)-1], today); ok && p.End > month.End {
			periods = append(periods, p)
		}
	}
	return periods
}

// CalendarDay is what a day of a month brought towards a patient's bill.
type CalendarDay struct {
	Day     string `json:"day"`
	Data    bool   `json:"data"`    // of a device, and it counts
	Minutes int    `json:"minutes"` // that count, by the day on which they began
}

// CalendarPeriod is a 30-day period that touches the month.
type CalendarPeriod struct {
	Start  string `json:"period_start"`
	End    string `json:"period_end"`
	Days   int    `json:"days"`
	Needed int    `json:"days_needed"`
}

// MonthCalendar is a month of a patient, day by day: which days have data that counts, and what time was spent.
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
		periods = append(periods, CalendarPeriod{w.Start, w.End, len(w.days), baseRule(DeviceSupply).MinDays})
	}
	stretches, err := e.loggedTime(app, []string{patientID}, month)
	if err != nil {
		return nil, nil, err
	}
	counting := e.dropUnconsentedTime(f, stretches[patientID], month)
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
