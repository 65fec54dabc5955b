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

// FunnelOf counts patients as of the last day of a month, or today while it runs. A patient's days are those of the 30-day period that has most of them,
// among those that end in the month and the one that runs on the day.
func (e *Engine) FunnelOf(app core.App, month Span, now time.Time) (f Funnel, asOf string, err error) {
	asOf = min(month.End, e.Day(now))
	from, to := e.instants(month)
	rows, err := collections.CountedMinutes(app, from, to, e.countsOf(month))
	if err != nil {
		return f, asOf, err
	}
	minutes := map[string]int{}
	for _, row := range rows {
		minutes[row.Patient] = row.Minutes
	}
	for after := ""; ; {
		ids, err := collections.EnrolledSince(app, from, after, chunk)
		if err != nil || len(ids) == 0 {
			return f, asOf, err
		}
		after = ids[len(ids)-1]
		if err := e.funnelOf(app, &f, ids, minutes, month, asOf, e.Day(now)); err != nil {
			return f, asOf, err
		}
	}
}

func (e *Engine) funnelOf(app core.App, sum *Funnel, ids []string, minutes map[string]int, month Span, asOf, today string) error {
	patients, err := e.load(app, ids, month.Start)
	if err != nil {
		return err
	}
	days, err := e.mostDays(app, patients, month, today)
	if err != nil {
		return err
	}
	for id, f := range patients {
		if !f.activeOn(asOf) {
			continue
		}
		against := e.missing(f, asOf)
		sum.Enrolled++
		sum.Consented += oneIf(!slices.Contains(against, MissingConsent))
		sum.Eligible += oneIf(len(against) == 0)
		sum.WithData += oneIf(days[id] > 0)
		sum.Days16 += oneIf(days[id] >= ruleOf(DeviceSupply).MinDays)
		sum.Days2 += oneIf(days[id] >= ruleOf(ShortSupply).MinDays && days[id] < ruleOf(DeviceSupply).MinDays)
		sum.Minutes20 += oneIf(minutes[id] >= ruleOf(FirstTwenty).MinMinutes)
		sum.Minutes10 += oneIf(minutes[id] >= ruleOf(FirstTen).MinMinutes && minutes[id] < ruleOf(FirstTwenty).MinMinutes)
	}
	return nil
}

func oneIf(holds bool) int {
	if holds {
		return 1
	}
	return 0
}

// mostDays are, by patient, the days with data of the period of a month that has most of them.
func (e *Engine) mostDays(app core.App, patients map[string]*facts, month Span, today string) (map[string]int, error) {
	anchors, err := e.anchors(app, patients)
	if err != nil {
		return nil, err
	}
	var windows []window
	for id, found := range anchors {
		for _, p := range periodsHere(found, month, today) {
			windows = append(windows, window{Patient: id, Start: p.Start, End: p.End})
		}
	}
	if err := e.fill(app, patients, windows); err != nil {
		return nil, err
	}
	days := map[string]int{}
	for _, w := range windows {
		days[w.Patient] = max(days[w.Patient], len(w.days))
	}
	return days, nil
}

// periodsHere are a patient's periods that end in a month, and the one that runs today if that is a day of it.
func periodsHere(anchors []string, month Span, today string) []Span {
	periods := periodsOf(anchors, month)
	if len(anchors) > 0 && month.holds(today) {
		if p, ok := periodWith(anchors[len(anchors)-1], today); ok && p.End > month.End {
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

// Calendar is a month of a patient, day by day: which days have data that counts, and what time was spent.
func (e *Engine) Calendar(app core.App, patientID string, month Span, now time.Time) (days []CalendarDay, periods []CalendarPeriod, err error) {
	patients, err := e.load(app, []string{patientID}, month.Start)
	if err != nil {
		return nil, nil, err
	}
	f := patients[patientID]
	anchors, err := e.anchors(app, patients)
	if err != nil {
		return nil, nil, err
	}
	here := append(periodsHere(anchors[patientID], month, e.Day(now)), month)
	windows := make([]window, len(here))
	for i, p := range here {
		windows[i] = window{Patient: patientID, Start: p.Start, End: p.End}
	}
	if err := e.fill(app, patients, windows); err != nil {
		return nil, nil, err
	}
	ofMonth := windows[len(windows)-1].days
	for _, w := range windows[:len(windows)-1] {
		periods = append(periods, CalendarPeriod{w.Start, w.End, len(w.days), ruleOf(DeviceSupply).MinDays})
	}
	stretches, err := e.stretchesOf(app, []string{patientID}, month)
	if err != nil {
		return nil, nil, err
	}
	counting := e.consented(f, stretches[patientID], month)
	uncover(counting)
	spent := map[string]time.Duration{}
	for _, s := range counting {
		spent[e.Day(s.StartedAt)] += s.counted
	}
	for day := month.Start; day <= month.End; day = AddDays(day, 1) {
		days = append(days, CalendarDay{day, slices.Contains(ofMonth, day), int(spent[day] / time.Minute)})
	}
	return days, periods, nil
}
