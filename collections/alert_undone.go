package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// AlertBefore is how an alert stood before somebody did something with it.
type AlertBefore struct {
	Status       string
	Acknowledged bool // stays as it is on record, else nobody has
	Notes        phi.Text
	// HeldUntil is until when its escalation waited; zero leaves it.
	HeldUntil time.Time
	// CountAnew: readings came meanwhile that were not counted for it.
	CountAnew bool
}

// DeviceID is the device or hub that it is about; "" when it is about a reading.
func (a *Alert) DeviceID() string { return a.GetString("device_id") }

// Restore makes an alert again what it was.
func (a *Alert) Restore(tx core.App, before AlertBefore, now time.Time) error {
	a.Load(map[string]any{AlertStatus: before.Status, AlertNotes: before.Notes.Reveal(), "resolved_by": "", "resolved_at": "", "updated_at": Instant(now)})
	columns := append(alertChanges[:len(alertChanges):len(alertChanges)], "held_until", "normal_readings")
	if !before.Acknowledged {
		a.Load(map[string]any{"acknowledged": false, "acknowledged_by": "", "acknowledged_at": ""})
	}
	if !before.HeldUntil.IsZero() {
		a.Set("held_until", Instant(before.HeldUntil))
	}
	if before.CountAnew {
		a.Set("normal_readings", 0)
	}
	return Update(tx, a.ProxyRecord(), columns...)
}

// AnsweredAt reports whether somebody acknowledged or resolved an alert of a patient at a moment, as far as that still holds.
func AnsweredAt(app core.App, patientID, by string, at time.Time) (bool, error) {
	return queryValue[bool](app, "look for answered alerts", `SELECT EXISTS (SELECT 1 FROM alerts WHERE patient = {:patient} AND
		(acknowledged_by = {:by} AND acknowledged_at = {:at} OR resolved_by = {:by} AND resolved_at = {:at}))`,
		dbx.Params{"patient": patientID, "by": by, "at": Instant(at)})
}

// Reviewed is when somebody last looked at a patient, and who; zero for never.
func Reviewed(app core.App, patientID string) (at time.Time, by string, err error) {
	rows, err := queryAll[struct {
		At string `db:"last_reviewed_at"`
		By string `db:"last_reviewed_by"`
	}](app, "read the last review", `SELECT last_reviewed_at, last_reviewed_by FROM triage_scores WHERE patient = {:patient}`, dbx.Params{"patient": patientID})
	if err != nil || len(rows) == 0 {
		return time.Time{}, "", err
	}
	return ParseInstant(rows[0].At), rows[0].By, nil
}

// ReadSince reports whether a reading of a patient was stored since a time; of one device only unless deviceID is "".
func ReadSince(app core.App, patientID, deviceID string, since time.Time) (bool, error) {
	return queryValue[bool](app, "look for readings", `SELECT EXISTS (SELECT 1 FROM observations WHERE patient = {:patient}
		AND {:device} IN ('', device_id) AND created_at >= {:since})`, dbx.Params{"patient": patientID, "device": deviceID, "since": Instant(since)})
}

// SnoozesEnded are the snoozes of a type of alerts about a patient that ended since a time.
func SnoozesEnded(app core.App, patientID, alertType string, since time.Time) ([]*Snooze, error) {
	return listOf[Snooze](app, Snoozes, dbx.NewExp("patient = {:patient} AND type = {:type} AND ended_at >= {:since}",
		dbx.Params{"patient": patientID, "type": alertType, "since": Instant(since)}), "id")
}
