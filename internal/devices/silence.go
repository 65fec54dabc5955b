package devices

import (
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// silenceLimit is how long an assigned device may be without a reading; people hear of it after another silenceLimit.
// Source: docs/decisions/devices.md, "No reading in 24 hours".
const silenceLimit = 24 * time.Hour

// FlagNoReading is why a device is flagged.
const FlagNoReading = alerts.TypeNoReading24h

// Held is a device in a patient's hands, as far as its silence is concerned.
type Held struct {
	AssignedAt    time.Time
	LastReadingAt time.Time // zero for none
	Delivery      string    // YYYY-MM-DD; "" when it was not shipped
	Zone          *time.Location
}

// QuietSince is the moment from which the device's silence counts: its last reading, else its assignment, or the end of the
// day on which it should have arrived.
func (h Held) QuietSince() time.Time {
	if !h.LastReadingAt.Before(h.AssignedAt) {
		return h.LastReadingAt
	}
	if arrived, err := time.ParseInLocation(time.DateOnly+" 15", h.Delivery+" 12", h.Zone); err == nil {
		if end := collections.StartOfNextDay(arrived); end.After(h.AssignedAt) {
			return end
		}
	}
	return h.AssignedAt
}

type heldRow struct {
	DeviceID      string `db:"device_id"`
	PatientID     string `db:"patient"`
	AssignedAt    string `db:"assigned_at"`
	LastReadingAt string `db:"last_reading_at"`
	Flagged       bool   `db:"flagged"`
	TimeZone      string `db:"time_zone"`
	Delivery      string `db:"delivery"`
	LastAlert     string `db:"last_alert"` // its time and record id
	Missed        bool   `db:"missed"`
}

// quietDevices are the devices in active patients' hands that may be silent, or are flagged.
func quietDevices(app core.App, before time.Time) (rows []heldRow, err error) {
	err = app.DB().NewQuery(`SELECT d.device_id, d.patient, d.assigned_at, d.last_reading_at, d.flagged, p.time_zone,
			COALESCE((SELECT estimated_delivery FROM device_orders o WHERE o.device_id = d.device_id AND o.patient = d.patient
				AND o.status != 'cancelled' ORDER BY created_at DESC LIMIT 1), '') AS delivery,
			COALESCE((SELECT MAX(a.created_at || ' ' || a.id) FROM alerts a WHERE a.device_id = d.device_id AND a.device_id != ''
				AND a.type = 'no_reading_24h' AND a.patient = d.patient), '') AS last_alert,
			EXISTS (SELECT 1 FROM alerts a WHERE a.patient = d.patient AND a.acknowledged = FALSE AND a.type = 'missed_reading') AS missed
		FROM devices d JOIN patients p ON p.id = d.patient AND p.active = TRUE AND p.deleted_at = ''
		WHERE d.patient != '' AND (d.flagged = TRUE OR MAX(d.last_reading_at, d.assigned_at) < {:before}) ORDER BY d.device_id`).
		Bind(dbx.Params{"before": collections.Instant(before)}).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("list quiet devices: %w", err)
	}
	return rows, nil
}

// CheckSilence flags the devices without a reading for 24 hours and alerts for them, unless the patient has a missed_reading
// alert that says as much; a flag that no longer holds is taken back. A silence alerts once, and people are told of it
// when it has lasted another 24 hours.
func (e *Engine) CheckSilence(app core.App, now time.Time) (flagged, raised int, err error) {
	rows, err := quietDevices(app, now.Add(-silenceLimit))
	if err != nil {
		return 0, 0, err
	}
	for _, row := range rows {
		since := Held{
			AssignedAt: collections.ParseInstant(row.AssignedAt), LastReadingAt: collections.ParseInstant(row.LastReadingAt),
			Delivery: row.Delivery, Zone: collections.Zone(row.TimeZone, e.rules.PracticeZone),
		}.QuietSince()
		silent := now.Sub(since) > silenceLimit
		alertedAt, alertID, _ := strings.Cut(row.LastAlert, " ")
		alerted := collections.ParseInstant(alertedAt).After(since)
		if silent != row.Flagged {
			if err := flag(app, row, silent); err != nil {
				return flagged, raised, err
			}
			if silent {
				flagged++
			}
		}
		switch lasted := now.Sub(since); {
		case silent && !alerted && !row.Missed:
			raised++
			err = app.RunInTransaction(func(tx core.App) error { return raiseSilence(tx, row, since, now) })
		case alerted && lasted > 2*silenceLimit && lasted <= 3*silenceLimit: // a day of grace for the check itself
			err = tellOfSilence(app, row, alertID, since, now)
		}
		if err != nil {
			return flagged, raised, err
		}
	}
	return flagged, raised, nil
}

// flag writes the flag unless a reading or a new holder came in between.
func flag(app core.App, row heldRow, silent bool) error {
	reason := ""
	if silent {
		reason = FlagNoReading
	}
	_, err := app.NonconcurrentDB().Update(collections.Devices, dbx.Params{"flagged": silent, "flag_reason": reason},
		dbx.HashExp{"device_id": row.DeviceID, "patient": row.PatientID, "last_reading_at": row.LastReadingAt}).Execute()
	if err != nil {
		return fmt.Errorf("flag device: %w", err)
	}
	return nil
}

func raiseSilence(tx core.App, row heldRow, since, now time.Time) error {
	device, err := collections.FindDevice(tx, row.DeviceID)
	if err != nil || device.PatientID() != row.PatientID || collections.Instant(device.LastReadingAt()) != row.LastReadingAt {
		return err // a reading came in between
	}
	draft := alerts.Draft{
		PatientID: row.PatientID, DeviceID: row.DeviceID, MeasuredAt: since, Unmeasured: true,
		Finding: alerts.Finding{Type: alerts.TypeNoReading24h, Level: alerts.NoData, Message: silenceMessage(row)},
	}
	_, err = raise(tx, alarm{draft: draft}, now)
	return err
}

func silenceMessage(row heldRow) string {
	return "Device " + row.DeviceID + " has sent no reading for 24 hours."
}

func tellOfSilence(app core.App, row heldRow, alertID string, since, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		return notifications.Announce(tx, notifications.Announcement{
			Kind: notifications.DeviceAlertRaised, Severity: "warning", PatientID: row.PatientID, AlertID: alertID,
			Body: silenceMessage(row), Key: alerts.TypeNoReading24h + "/" + row.DeviceID + "/" + collections.Instant(since),
		}, now)
	})
}
