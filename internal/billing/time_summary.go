package billing

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// MonthTime is a patient's time in a month, in whole minutes.
type MonthTime struct {
	collections.MinutesByCategory
	// NextThreshold is how many interactive minutes the next unit asks for; nil when there is none.
	NextThreshold *int `json:"next_threshold_minutes"`
}

// TimeSummary sums the finished time of a month by patient; userID, patientID and teamOf ("" for all) narrow it.
func (e *Engine) TimeSummary(app core.App, month Span, userID, patientID, teamOf string) (list []MonthTime, err error) {
	from, to := e.instants(month)
	sums, err := collections.SumTime(app, from, to, userID, patientID, teamOf)
	for _, sum := range sums {
		list = append(list, MonthTime{sum, e.nextThreshold(sum.Interactive)})
	}
	return list, err
}

// nextThreshold is the next number of minutes in a month that makes a unit.
func (e *Engine) nextThreshold(minutes int) *int {
	for n := range e.MaxUnits99458 + 1 {
		if threshold := ruleOf(FirstTwenty).MinMinutes + n*ruleOf(NextTwenty).Block; minutes < threshold {
			return &threshold
		}
	}
	return nil
}

// MonthSpan is the month YYYY-MM as days; false when the text is none.
func MonthSpan(text string) (Span, bool) {
	if len(text) != len("2006-01") || ParseDay(text+"-01").IsZero() {
		return Span{}, false
	}
	return monthOf(text + "-01"), true
}
