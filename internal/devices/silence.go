package devices

import (
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// silenceLimit is how long an assigned device may send no reading; the alert is announced after another silenceLimit. Source:
// docs/decisions/devices.md, "No reading in 24 hours".
const silenceLimit = 24 * time.Hour

// FlagNoReading is the reason of a flag.
const FlagNoReading = alerts.TypeNoReading24h

// AssignedDevice is an assigned device as the silence check needs it.
type AssignedDevice struct {
	AssignedAt    time.Time
	LastReadingAt time.Time // zero for none
	Delivery      string    // YYYY-MM-DD; "" if it was not shipped
	HoldEnd       time.Time // of the latest patient hold; zero for none
	Zone          *time.Location
}

// SilentSince returns the start of the device's silence: its last reading, or its assignment, or the end of the day of expected arrival; not
// before the end of a patient hold.
func (d AssignedDevice) SilentSince() time.Time {
	if since := d.lastSign(); since.After(d.HoldEnd) {
		return since
	}
	return d.HoldEnd
}

func (d AssignedDevice) lastSign() time.Time {
	if !d.LastReadingAt.Before(d.AssignedAt) {
		return d.LastReadingAt
	}
	if arrived, err := time.ParseInLocation(time.DateOnly+" 15", d.Delivery+" 12", d.Zone); err == nil {
		if end := collections.StartOfNextDay(arrived); end.After(d.AssignedAt) {
			return end
		}
	}
	return d.AssignedAt
}

// CheckSilence flags devices without a reading for 24 hours and raises an alert, unless the patient has a missed_reading alert; a flag that
// no longer holds is cleared. Each silence alerts once, and is announced after another 24 hours.
func (e *Engine) CheckSilence(app core.App, now time.Time) (flagged, raised int, err error) {
	rows, err := collections.SilentDevices(app, now.Add(-silenceLimit))
	if err != nil {
		return 0, 0, err
	}
	for _, row := range rows {
		since := AssignedDevice{
			AssignedAt: collections.ParseInstant(row.AssignedAt), LastReadingAt: collections.ParseInstant(row.LastReadingAt),
			Delivery: row.Delivery, HoldEnd: collections.ParseInstant(row.HoldEnd), Zone: collections.Zone(row.TimeZone, e.rules.PracticeZone),
		}.SilentSince()
		silent := now.Sub(since) > silenceLimit
		alertedAt, alertID, _ := strings.Cut(row.LastAlert, " ")
		alerted := collections.ParseInstant(alertedAt).After(since)
		if silent != row.Flagged {
			because := ""
			if silent {
				because = FlagNoReading
				flagged++
			}
			if err := collections.FlagDevice(app, row, because); err != nil {
				return flagged, raised, err
			}
		}
		switch silence := now.Sub(since); {
		case silent && !alerted && !row.Missed:
			raised++
			err = app.RunInTransaction(func(tx core.App) error { return raiseSilence(tx, row, since, now) })
		case alerted && silence > 2*silenceLimit && silence <= 3*silenceLimit: // a day of tolerance for a late check
			err = announceSilence(app, row, alertID, since, now)
		}
		if err != nil {
			return flagged, raised, err
		}
	}
	return flagged, raised, nil
}

func raiseSilence(tx core.App, row collections.AssignedDevice, since, now time.Time) error {
	device, err := collections.FindDevice(tx, row.DeviceID)
	if err != nil || device.PatientID() != row.PatientID || collections.FormatInstant(device.LastReadingAt()) != row.LastReadingAt {
		return err // a reading arrived in between
	}
	draft := alerts.Draft{
		PatientID: row.PatientID, DeviceID: row.DeviceID, MeasuredAt: since, OmitsValue: true,
		Finding: alerts.Finding{Type: alerts.TypeNoReading24h, Level: alerts.NoData, Message: silenceMessage(row)},
	}
	_, err = raise(tx, deviceAlert{draft: draft}, now)
	return err
}

func silenceMessage(row collections.AssignedDevice) string {
	return "Device " + row.DeviceID + " has sent no reading for 24 hours."
}

func announceSilence(app core.App, row collections.AssignedDevice, alertID string, since, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		return notifications.Announce(tx, notifications.Announcement{
			Kind: notifications.DeviceAlertRaised, Severity: "warning", PatientID: row.PatientID, AlertID: alertID,
			Body: silenceMessage(row), Key: alerts.TypeNoReading24h + "/" + row.DeviceID + "/" + collections.FormatInstant(since),
		}, now)
	})
}
