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
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// ClockWrong reports whether a device cannot have measured something of a patient's at a time: more than a year before the patient was
// enrolled, which is more than devices bring along, or before it was made. Source: docs/decisions/devices.md, "Wrong clock".
func ClockWrong(app core.App, deviceID, patientID string, at time.Time) (bool, error) {
	enrolled, made, err := collections.ClockBounds(app, patientID, deviceID)
	if err != nil {
		return false, err
	}
	return before(at, enrolled.AddDate(-1, 0, 0), enrolled) || before(at, made.Add(-dayOfMaking), made), nil
}

// NoteWrongClock has people told that the clock of a device is wrong, by something that made no observation.
func NoteWrongClock(tx core.App, r vitals.Reading, patientID string, now time.Time) error {
	if err := collections.NoteWrongClock(tx, r.DeviceID, string(r.Kind), patientID, "", now); err != nil {
		return err
	}
	device, err := collections.FindDevice(tx, r.DeviceID)
	if err != nil {
		return fmt.Errorf("find a device whose clock is wrong: %w", err)
	}
	return checkClock(tx, device, now)
}

// dayOfMaking allows for the time zone of the factory.
const dayOfMaking = 24 * time.Hour

// before reports whether a time lies before a bound that is known.
func before(at, bound, known time.Time) bool { return !known.IsZero() && at.Before(bound) }

// checkClock tells of a clock that is wrong, once until a sane time comes, and takes that back once it has.
func checkClock(tx core.App, device *collections.Device, now time.Time) error {
	wrongAt := device.ClockWrongAt()
	switch {
	case wrongAt.IsZero():
		return nil
	case device.MeasuredAfter(wrongAt):
		device.ClockRight()
		if err := save(tx, device); err != nil {
			return err
		}
		ended, err := collections.EndClockAlerts(tx, device.DeviceID(), alerts.TypeDeviceClock, string(alerts.StatusAutoResolved), alerts.System, now)
		if err != nil {
			return err
		}
		return tellResolved(tx, ended, device.DeviceID(), "The clock of device "+device.DeviceID()+" is right again.", now)
	case !device.ClockToldAt().IsZero():
		return nil
	}
	device.Set(collections.DeviceClockToldAt, collections.Instant(now))
	if err := save(tx, device); err != nil {
		return err
	}
	watched, err := monitored(tx, device.ClockPatient())
	if err != nil || !watched {
		return err
	}
	message, err := clockMessage(tx, device)
	if err != nil {
		return err
	}
	_, err = raise(tx, alarm{kind: notifications.DeviceAlertRaised, draft: alerts.Draft{
		PatientID: device.ClockPatient(), ObservationID: device.ClockObservation(), DeviceID: device.DeviceID(), MeasuredAt: wrongAt, Unmeasured: true,
		Finding: alerts.Finding{Type: alerts.TypeDeviceClock, Level: alerts.Warning, Parameter: "measured_at", Message: message},
	}}, now)
	return err
}

// clockMessage names what was measured: nothing of it was judged, so somebody has to look.
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
			values = append(values, p.Say(*value))
		}
	}
	at := collections.ParseInstant(stored.GetString(collections.ObservationMeasuredAt))
	return fmt.Sprintf("%s It reported %s, measured %s, which is impossible. Its readings are kept and not judged.",
		message, strings.Join(values, ", "), validate.FormatInstant(at)), nil
}

// production is the date of manufacture in a unique device identifier as people read it, by its application identifier.
// Source: GS1 General Specifications, AI (11), YYMMDD; FDA UDI rule, 21 CFR 801.40, 2013.
var production = regexp.MustCompile(`\(11\)(\d{2})(\d{2})(\d{2})`)

// MadeOn is the day on which a device was made, by its unique device identifier; "" when that does not say. A day of 00 is the last of
// the month.
func MadeOn(udi string) string {
	found := production.FindStringSubmatch(udi)
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
