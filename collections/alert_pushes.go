package collections

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ReadingValues are the values of one reading in the order of the columns that a caller named; nil for one that was not measured.
type ReadingValues struct {
	ID         string
	MeasuredAt time.Time
	Values     []*float64
}

// LastValues returns the last final readings of a patient with a value in one of the columns, latest measurement first. It reads each kind by
// its index. meal narrows to readings with that marker, unless "".
func LastValues[Kind ~string](app core.App, patientID string, kinds []Kind, columns []string, meal string, limit int) (list []ReadingValues, err error) {
	measured := strings.Join(columns, " IS NOT NULL OR ") + " IS NOT NULL"
	for _, kind := range kinds {
		rows, err := app.DB().NewQuery(`SELECT id, measured_at, ` + strings.Join(columns, ", ") + ` FROM observations
			WHERE patient = {:patient} AND observation_type = {:kind} AND status = 'final' AND (` + measured + `) AND {:meal} IN ('', meal_context)
			ORDER BY measured_at DESC LIMIT +{:limit}`).Bind(dbx.Params{"patient": patientID, "kind": string(kind), "meal": meal, "limit": limit}).Rows()
		if err != nil {
			return nil, wrap(err, "read the last values")
		}
		found, err := scanValues(rows, len(columns), nil)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	if len(kinds) > 1 {
		slices.SortStableFunc(list, func(a, b ReadingValues) int { return b.MeasuredAt.Compare(a.MeasuredAt) })
	}
	return list[:min(len(list), limit)], nil
}

// scanValues scans rows of an id, a time of measurement and values, after which extra columns follow.
func scanValues(rows *dbx.Rows, values int, extra func(i int) []any) (list []ReadingValues, err error) {
	defer rows.Close() //nolint:errcheck // Err below reports failures
	for rows.Next() {
		var at string
		one := ReadingValues{Values: make([]*float64, values)}
		into := []any{&one.ID, &at}
		for i := range one.Values {
			into = append(into, &one.Values[i])
		}
		if extra != nil {
			into = append(into, extra(len(list))...)
		}
		if err := rows.Scan(into...); err != nil {
			return nil, fmt.Errorf("read values: %w", err)
		}
		one.MeasuredAt = ParseInstant(at)
		list = append(list, one)
	}
	return list, wrap(rows.Err(), "read values")
}

// PushedAlert is an alert about a reading that was pushed. Value and Threshold are those of Parameter; NULL values are 0.
type PushedAlert struct {
	ReadingValues
	Parameter        string
	Value, Threshold float64
}

// wasPushed is, in SQL, an alert that was pushed when it was raised or later; it is the exact condition of a partial index. One stored before
// decisions were stored has none, and was pushed unless it was snoozed or superseded.
const wasPushed = `push_rule NOT IN ('trend', 'never', 'snoozed', 'ended') AND (push_rule != '' OR snoozed = FALSE AND resolution_reason != 'superseded')`

// PushedAlerts returns the last critical and warning alerts of a patient and type that were pushed and not retracted, latest first, with values
// of their readings, which count or have a time in doubt. A push that reached no one, because of quiet hours or a failure, does not count.
func PushedAlerts(app core.App, patientID, alertType string, columns []string, limit int) ([]PushedAlert, error) {
	rows, err := app.DB().NewQuery(`SELECT a.observation, a.measured_at, o.` + strings.Join(columns, ", o.") + `, a.parameter, a.value, a.threshold
		FROM (SELECT * FROM alerts WHERE patient = {:patient} AND type = {:type} AND ` + wasPushed + `) a JOIN observations o ON o.id = a.observation
		WHERE a.level IN ('critical', 'warning') AND a.resolution_reason != 'withdrawn' AND (o.status = 'final' OR o.status = 'suspect' AND a.time_in_doubt = TRUE)
			AND NOT (` + pushOf("IN ('skipped_quiet_hours', 'failed', 'expired_token')") + ` AND NOT ` + pushOf("IN ('pending', 'sent')") + `)
		ORDER BY a.created_at DESC, a.id DESC LIMIT +{:limit}`).Bind(dbx.Params{"patient": patientID, "type": alertType, "limit": limit}).Rows()
	if err != nil {
		return nil, wrap(err, "read pushed alerts")
	}
	var list []PushedAlert
	numbers := make([][2]sql.NullFloat64, limit)
	values, err := scanValues(rows, len(columns), func(i int) []any {
		list = append(list, PushedAlert{})
		return []any{&list[i].Parameter, &numbers[i][0], &numbers[i][1]}
	})
	for i, one := range values {
		list[i].ReadingValues, list[i].Value, list[i].Threshold = one, numbers[i][0].Float64, numbers[i][1].Float64
	}
	return list, err
}

// pushOf is, in SQL, whether the alert has a push with a status.
func pushOf(status string) string {
	return `EXISTS (SELECT 1 FROM notifications n JOIN push_deliveries p ON p.notification = n.id
		WHERE n.alert = a.id AND n.alert != '' AND p.status ` + status + `)`
}

// SetPushRule replaces why an alert was pushed, or not.
func SetPushRule(tx core.App, alertID, rule, reason string, now time.Time) error {
	sealed, err := Seal(reason, "alerts.push_reason", alertID)
	if err != nil {
		return fmt.Errorf("seal push reason: %w", err)
	}
	return update(tx, "set push rule", Alerts, dbx.Params{"push_rule": rule, "push_reason": sealed, "updated_at": FormatInstant(now)}, dbx.HashExp{"id": alertID})
}

// CountListedWarnings counts the warnings since a time that were not pushed by the practice's rule for warnings.
func CountListedWarnings(app core.App, careTeamOf string, since time.Time) (int, error) {
	where := Conditions{dbx.NewExp("created_at >= {:since}", dbx.Params{"since": FormatInstant(since)})}
	return where.And("level = 'warning' AND push_rule IN ('trend', 'never')").OnCareTeamOf(careTeamOf).Count(app, Alerts)
}
