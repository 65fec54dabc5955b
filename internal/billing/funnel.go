package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Funnel counts how far the patients of a month are toward being billed, as of a day of it. Source: docs/decisions/billing.md, "The month's
// funnel".
type Funnel struct {
	Enrolled  int `json:"enrolled"`
	Consented int `json:"consented"`
	Eligible  int `json:"eligible"`  // no missing items
	WithData  int `json:"with_data"` // at least one day of device data in a period of the month
	Days16    int `json:"days_16_or_more"`
	Days2     int `json:"days_2_to_15"`
	Minutes20 int `json:"minutes_20_or_more"`
	Minutes10 int `json:"minutes_10_to_19"`
}

// MonthFunnel counts patients as of the last day of a month, or today in the current month. A patient's days are those of the 30-day period with
// the most, among the periods that end in the month and the current one.
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
		sum.Days16 += boolToInt(days[id] >= baseRule(DeviceSupply, asOf).MinDays)
		sum.Days2 += boolToInt(days[id] >= baseRule(ShortSupply, asOf).MinDays && days[id] < baseRule(DeviceSupply, asOf).MinDays)
		sum.Minutes20 += boolToInt(minutes[id] >= baseRule(FirstTwenty, asOf).MinMinutes)
		sum.Minutes10 += boolToInt(minutes[id] >= baseRule(FirstTen, asOf).MinMinutes && minutes[id] < baseRule(FirstTwenty, asOf).MinMinutes)
	}
	return nil
}

func boolToInt(holds bool) int {
	if holds {
		return 1
	}
	return 0
}
