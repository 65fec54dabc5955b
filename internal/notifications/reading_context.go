package notifications

import (
	"cmp"
	"encoding/json"
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

// scoreType and clockType are alert types of internal/alerts, which imports this package.
const (
	scoreType = "early_warning"
	clockType = "device_clock"
)

// readingContext returns the sentences that an in-app text adds to a message about a reading: the mean of the seven days that end with it, of
// each value that a message names, and when it was measured; when it was received, if the time of measurement is in doubt. It returns "" for
// an alert about anything else. Source: docs/decisions/notifications.md, "In-app notifications".
func readingContext(app core.App, alertID string, zone *time.Location) (string, error) {
	if alertID == "" {
		return "", nil
	}
	alert, err := collections.FindAlert(app, alertID)
	if err != nil {
		return "", collections.IgnoreNotFound(err)
	}
	isReported := alert.QuarantineID() != "" && !alert.Late() // the message about a late one has its time
	if alert.MeasuredAt().IsZero() || alert.ObservationID() == "" && !isReported {
		return "", nil
	}
	about, err := meansOf(app, alert)
	if err != nil {
		return "", err
	}
	isReceipt, err := isDatedByReceipt(app, alert)
	if err != nil {
		return "", err
	}
	shown := func(at time.Time) string { return at.In(zone).Format("Jan 2, 2006, 3:04 PM MST") }
	switch {
	case isReceipt:
		return about + " Received " + shown(alert.MeasuredAt()) + ".", nil
	case alert.Late() && alert.ClockUnproven():
		return about + " Measured " + shown(alert.MeasuredAt()) + " by the device's clock, received " + shown(alert.CreatedAt()) + ".", nil
	}
	return about + " Measured " + shown(alert.MeasuredAt()) + ".", nil
}

// isDatedByReceipt reports whether the time of an alert is that of receipt: it is about a clock, or the clock of its device is in doubt or ahead. An
// early warning has the time of its newest value.
func isDatedByReceipt(app core.App, alert *collections.Alert) (bool, error) {
	if alert.TimeInDoubt() || alert.Type() == clockType {
		return true, nil
	}
	if alert.Type() == scoreType {
		newest, err := collections.FindObservation(app, alert.ObservationID())
		if err != nil {
			return false, collections.IgnoreNotFound(err)
		}
		return newest.GetString(collections.ObservationMeasuredAt) != collections.FormatInstant(alert.MeasuredAt()), nil
	}
	if alert.QuarantineID() == "" {
		return false, nil
	}
	event, err := collections.FindGatewayEvent(app, alert.QuarantineID())
	if err != nil {
		return false, collections.IgnoreNotFound(err)
	}
	return event.Timestamp().After(event.ReceivedAt()), nil
}

// meansOf returns a sentence with the means of the values that an alert is about, or "" if it is about none.
func meansOf(app core.App, alert *collections.Alert) (string, error) {
	if alert.Type() != scoreType {
		group := groupOf(alert.Type(), alert.Parameter())
		if len(group) == 0 {
			return "", nil
		}
		mean, err := meanText(app, alert.PatientID(), group, alert.MeasuredAt())
		switch {
		case err != nil:
			return "", err
		case mean == "":
			return fmt.Sprintf(" No other reading in %d days.", contextDays), nil
		}
		return fmt.Sprintf(" Mean of the last %d days: %s.", contextDays, mean), nil
	}
	var reported struct{ Points map[string]int }
	if err := json.Unmarshal([]byte(alert.ReportedValues().Reveal()), &reported); err != nil {
		return "", nil //nolint:nilerr // the parts are unknown, the message still names them
	}
	var means []string
	for _, p := range vitals.Parameters {
		if reported.Points[p.Column] == 0 {
			continue
		}
		mean, err := meanText(app, alert.PatientID(), []*vitals.Parameter{p}, alert.MeasuredAt())
		if err != nil {
			return "", err
		}
		means = append(means, p.Label+" "+cmp.Or(mean, "has no other reading"))
	}
	return fmt.Sprintf(" Means of the last %d days: %s.", contextDays, strings.Join(means, ", ")), nil
}

// groupOf returns the parameters of an alert's type, or those that share a group with the parameter that it names.
func groupOf(alertType, parameter string) (group []*vitals.Parameter) {
	for _, p := range vitals.ThresholdParameters {
		if p.Name == parameter {
			alertType = p.Group
		}
	}
	for _, p := range vitals.ThresholdParameters {
		if p.Group == alertType {
			group = append(group, p)
		}
	}
	return group
}

// meanText returns the mean of the parameters over the seven days until a time, which is included; "" for a single reading.
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
		return "", nil
	}
	means := make([]string, len(group))
	for i, p := range group {
		means[i] = vitals.FormatNumber(vitals.RoundHalfUp(sums[i]/float64(readings), min(p.FHIR.Decimals, 1)))
	}
	return fmt.Sprintf("%s %s (%d readings)", strings.Join(means, "/"), group[0].Range.Unit, readings), nil
}
