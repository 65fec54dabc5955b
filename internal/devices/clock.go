package devices

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// IsWrongClock reports whether a device cannot have measured something of a patient at a time: more than a year before enrollment, which is
// more than devices store, or before its manufacture. Source: docs/decisions/devices.md, "Wrong clock".
func IsWrongClock(app core.App, deviceID, patientID string, at time.Time) (bool, error) {
	enrolled, made, err := collections.ClockBounds(app, patientID, deviceID)
	if err != nil {
		return false, err
	}
	return isBefore(at, enrolled.AddDate(-1, 0, 0), enrolled) || isBefore(at, made.Add(-factoryZoneSlack), made), nil
}

// NoteWrongClock records a wrong clock that showed in an event without an observation, and raises the alert.
func NoteWrongClock(tx core.App, r vitals.Reading, patientID string, now time.Time) error {
	if err := collections.RecordWrongClock(tx, r.DeviceID, string(r.Kind), patientID, "", now); err != nil {
		return err
	}
	device, err := collections.FindDevice(tx, r.DeviceID)
	if err != nil {
		return fmt.Errorf("find the device with a wrong clock: %w", err)
	}
	return checkClock(tx, device, now)
}

// factoryZoneSlack allows for the time zone of the factory.
const factoryZoneSlack = 24 * time.Hour

// isBefore reports whether a time is before a bound, if its reference is set.
func isBefore(at, bound, reference time.Time) bool { return !reference.IsZero() && at.Before(bound) }

// checkClock raises the alert about a wrong clock once, and resolves it after a plausible time.
func checkClock(tx core.App, device *collections.Device, now time.Time) error {
	wrongAt := device.ClockWrongAt()
	switch {
	case wrongAt.IsZero():
		return nil
	case device.MeasuredAfter(wrongAt):
		device.ClearClockFault()
		if err := save(tx, device); err != nil {
			return err
		}
		ended, err := collections.ResolveClockAlerts(tx, device.DeviceID(), alerts.TypeDeviceClock, string(alerts.StatusAutoResolved), alerts.System, now)
		if err != nil {
			return err
		}
		return noteResolved(tx, ended, device.DeviceID(), "The clock of device "+device.DeviceID()+" is right again.", now)
	case !device.ClockNotifiedAt().IsZero():
		return nil
	}
	device.Set(collections.DeviceClockNotifiedAt, collections.Instant(now))
	if err := save(tx, device); err != nil {
		return err
	}
	watched, err := triage.IsMonitored(tx, device.ClockPatient())
	if err != nil || !watched {
		return err
	}
	message, err := clockMessage(tx, device)
	if err != nil {
		return err
	}
	_, err = raise(tx, deviceAlert{kind: notifications.DeviceAlertRaised, draft: alerts.Draft{
		PatientID: device.ClockPatient(), ObservationID: device.ClockObservation(), DeviceID: device.DeviceID(), MeasuredAt: wrongAt, WithoutValue: true,
		Finding: alerts.Finding{Type: alerts.TypeDeviceClock, Level: alerts.Warning, Parameter: "measured_at", Message: message},
	}}, now)
	return err
}

// clockMessage names the measured values: they were not evaluated, so a clinician has to look at them.
func clockMessage(tx core.App, device *collections.Device) (string, error) {
	message := "The clock of device " + device.DeviceID() + " is wrong: set it."
	if device.ClockObservation() == "" {
		return message, nil
	}
	stored, err := collections.FindObservation(tx, device.ClockObservation())
	if err != nil {
		return "", err
	}
	var values []string
	for _, p := range vitals.Parameters {
		if value := collections.Optional(stored, p.Column); value != nil {
			values = append(values, p.Text(*value))
		}
	}
	at := collections.ParseInstant(stored.GetString(collections.ObservationMeasuredAt))
	return fmt.Sprintf("%s It reported %s, measured %s, which is impossible. Its readings are stored and not evaluated.",
		message, strings.Join(values, ", "), validate.FormatInstant(at)), nil
}

// manufactureDatePattern matches the date of manufacture in the human-readable form of a unique device identifier. Source: GS1 General
// Specifications, AI (11), YYMMDD; FDA UDI rule, 21 CFR 801.40, 2013.
var manufactureDatePattern = regexp.MustCompile(`\(11\)(\d{2})(\d{2})(\d{2})`)

// ManufactureDate returns the date of manufacture in a unique device identifier; "" for none. Day 00 is the last of the month.
func ManufactureDate(udi string) string {
	found := manufactureDatePattern.FindStringSubmatch(udi)
	if found == nil {
		return ""
	}
	first, err := time.Parse("20060102", "20"+found[1]+found[2]+"01")
	if err != nil {
		return ""
	}
	if found[3] == "00" {
		return first.AddDate(0, 1, -1).Format(time.DateOnly)
	}
	day, err := time.Parse("20060102", "20"+found[1]+found[2]+found[3])
	if err != nil {
		return ""
	}
	return day.Format(time.DateOnly)
}
