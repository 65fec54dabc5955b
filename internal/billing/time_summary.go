package billing

import (
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// MonthTime is a patient's time in a month, in whole minutes.
type MonthTime struct {
	PatientID      string `db:"patient" json:"patient_id"`
	Interactive    int    `db:"interactive" json:"interactive_minutes"`
	Review         int    `db:"review" json:"review_minutes"`
	Interpretation int    `db:"interpretation" json:"interpretation_minutes"`
	// NextThreshold is how many interactive minutes the next unit asks for; nil when there is none.
	NextThreshold *int `db:"-" json:"next_threshold_minutes"`
}

// TimeSummary sums the finished time of a month by patient; userID, patientID and teamOf ("" for all) narrow it.
func (e *Engine) TimeSummary(app core.App, month Span, userID, patientID, teamOf string) (list []MonthTime, err error) {
	from, to := e.instants(month.Start, month.End)
	where := []dbx.Expression{
		dbx.NewExp("ended_at != '' AND started_at >= {:from} AND started_at < {:to}", dbx.Params{"from": from, "to": to}),
	}
	for column, value := range map[string]string{"user": userID, "patient": patientID} {
		if value != "" {
			where = append(where, dbx.HashExp{column: value})
		}
	}
	if teamOf != "" {
		where = append(where, collections.OnCareTeam("time_entries.patient", teamOf))
	}
	sum := func(category string) string {
		return fmt.Sprintf("CAST(SUM(CASE WHEN category = '%s' THEN duration_seconds ELSE 0 END) AS INTEGER) / 60 AS %s", category, category)
	}
	err = app.DB().Select("patient", sum("interactive"), sum("review"), sum("interpretation")).From(collections.TimeEntries).
		Where(collections.Every(where)).GroupBy("patient").OrderBy("patient").All(&list)
	if err != nil {
		return nil, fmt.Errorf("sum time of a month: %w", err)
	}
	for i := range list {
		list[i].NextThreshold = e.nextThreshold(list[i].Interactive)
	}
	return list, nil
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
	first, last := monthOf(text + "-01")
	return Span{first, last}, true
}
