package notifications

import (
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// contextDays is the length of the mean that an in-app text compares a reading with.
const contextDays = 7

// readingContext returns the sentences that an in-app text adds to a message about a measured value: the mean of the seven days that end
// with the reading, and when it was measured. It returns "" for an alert about anything else. Source: docs/decisions/notifications.md,
// "In-app notifications".
func readingContext(app core.App, alertID string, zone *time.Location) (string, error) {
	if alertID == "" {
		return "", nil
	}
	alert, err := collections.FindAlert(app, alertID)
	if err != nil {
		return "", collections.IgnoreNotFound(err)
	}
	group := groupOf(alert.Type(), alert.Parameter())
	if len(group) == 0 || alert.MeasuredAt().IsZero() {
		return "", nil
	}
	mean, err := meanText(app, alert.PatientID(), group, alert.MeasuredAt())
	if err != nil {
		return "", err
	}
	return " " + mean + " Measured " + alert.MeasuredAt().In(zone).Format("Jan 2, 2006, 3:04 PM MST") + ".", nil
}

// groupOf returns the parameters of an alert's type, or those that share a group with the parameter that it names.
func groupOf(alertType, parameter string) (group []*vitals.Parameter) {
	for _, p := range vitals.Watched {
		if p.Name == parameter {
			alertType = p.Group
		}
	}
	for _, p := range vitals.Watched {
		if p.Group == alertType {
			group = append(group, p)
		}
	}
	return group
}

// meanText describes the mean of the parameters over the seven days until a time, which is included.
func meanText(app core.App, patientID string, group []*vitals.Parameter, until time.Time) (string, error) {
	sums, readings := make([]float64, len(group)), 0
	values := make([]*float64, len(group))
	var kind, at, source, origin string
	into := []any{&kind, &at, &source, &origin}
	for i := range values {
		into = append(into, &values[i])
	}
	err := collections.EachSummaryReading(app, patientID, "", until.AddDate(0, 0, -contextDays), until.Add(time.Microsecond), vitals.Columns(group),
		func(rows *dbx.Rows) error {
			if err := rows.Scan(into...); err != nil {
				return err
			}
			for _, value := range values {
				if value == nil {
					return nil
				}
			}
			readings++
			for i, value := range values {
				sums[i] += *value
			}
			return nil
		})
	switch {
	case err != nil:
		return "", err
	case readings < 2:
		return fmt.Sprintf("No other reading in %d days.", contextDays), nil
	}
	means := make([]string, len(group))
	for i, p := range group {
		means[i] = vitals.FormatNumber(vitals.RoundHalfUp(sums[i]/float64(readings), min(p.FHIR.Decimals, 1)))
	}
	return fmt.Sprintf("Mean of the last %d days: %s %s (%d readings).", contextDays, strings.Join(means, "/"), group[0].Range.Unit, readings), nil
}
