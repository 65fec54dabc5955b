package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// correctionDue are the transmissions whose copy at the EMR a person is to correct, as their partial index has them.
const correctionDue = `correction_due_at != '' AND correction_closed_at = ''`

func (t *Transmission) CorrectionDueAt() time.Time    { return instantOf(t, "correction_due_at") }
func (t *Transmission) CorrectionClosedAt() time.Time { return instantOf(t, "correction_closed_at") }
func (t *Transmission) CorrectionClosedBy() string    { return t.GetString("correction_closed_by") }
func (t *Transmission) CorrectionNote() phi.Text {
	return phi.Text(TextOf(t.ProxyRecord(), "correction_note"))
}

// OpenCorrection makes a task for a person of the EMR's copy of something. One that is open stays as it is; one that somebody has closed is opened
// again only by a change that came after.
func OpenCorrection(tx core.App, id string, now time.Time) error {
	return exec(tx, "open correction", `UPDATE transmissions SET correction_due_at = {:now}, correction_closed_at = '', correction_closed_by = '',
			correction_note = '', updated_at = {:now}
		WHERE id = {:id} AND (correction_due_at = '' OR correction_closed_at != '' AND corrections > correction_closed_at_change)`,
		dbx.Params{"id": id, "now": Instant(now)})
}

// DropCorrection ends the task that the EMR's copy was: it says what it is to say.
func DropCorrection(tx core.App, id string) error {
	return exec(tx, "drop correction", `UPDATE transmissions SET correction_due_at = '', correction_closed_at = '', correction_closed_by = '',
		correction_note = '' WHERE id = {:id} AND correction_due_at != ''`, dbx.Params{"id": id})
}

// CloseCorrection notes that somebody has seen to the EMR's copy; not closed where nothing was open.
func CloseCorrection(tx core.App, id, by string, note phi.Text, now time.Time) (closed bool, err error) {
	sealed, err := Seal(note.Reveal(), "transmissions.correction_note", id)
	if err != nil {
		return false, fmt.Errorf("seal note: %w", err)
	}
	n, err := change(tx, "close correction", `UPDATE transmissions SET correction_closed_at = {:now}, correction_closed_by = {:by}, correction_note = {:note},
		correction_closed_at_change = corrections, updated_at = {:now} WHERE id = {:id} AND `+correctionDue,
		dbx.Params{"id": id, "by": by, "note": sealed, "now": Instant(now)})
	return n > 0, err
}

// CorrectionsDue counts the copies at the EMR that a person is to correct, as their list does.
func CorrectionsDue(app core.App) (int, error) {
	return queryValue[int](app, "count corrections", `SELECT COUNT(*) FROM transmissions WHERE `+correctionDue+` AND `+notDeleted, nil)
}

// The forms in which something is sent to the EMR: a reading itself, what is sent of it besides, and what is made of many.
const (
	FormReading      = ""
	FormHeartRate    = "heart_rate"
	FormMeanPressure = "mean_blood_pressure"
)

// SentForm is the transmission of one form of an observation, as far as a change of the observation is concerned.
type SentForm struct {
	ID          string `db:"id"`
	Form        string `db:"form"`
	Status      string `db:"status"`
	Ambiguous   bool   `db:"ambiguous"`
	Corrections int    `db:"corrections"`
	EMRID       string `db:"emr_resource_id"`
}

// SentForms are all that is sent, or was to be, of an observation.
func SentForms(app core.App, observationID string) ([]SentForm, error) {
	return queryAll[SentForm](app, "find transmissions", `SELECT id, form, status, ambiguous, corrections, emr_resource_id
		FROM transmissions WHERE observation = {:id} ORDER BY id`, dbx.Params{"id": observationID})
}

// StopTransmission ends a delivery before anything was sent.
func StopTransmission(tx core.App, id, code, message string, now time.Time) error {
	return update(tx, "stop transmission", Transmissions, dbx.Params{
		"status": FHIRFailed, "waits_for": "", "next_retry_at": "", "error_code": code, "error_message": message, "diagnostics": "", "updated_at": Instant(now),
	}, dbx.HashExp{"id": id})
}

// NoteCorrection stores that the EMR's copy is to follow a change, whatever is under way.
func NoteCorrection(tx core.App, id string, now time.Time) error {
	return exec(tx, "note correction", `UPDATE transmissions SET corrections = corrections + 1, updated_at = {:now} WHERE id = {:id}`,
		dbx.Params{"id": id, "now": Instant(now)})
}

// QueueCorrection is NoteCorrection for what is to be sent at once, with all its retries before it.
func QueueCorrection(tx core.App, id string, now time.Time) error {
	return exec(tx, "queue correction", `UPDATE transmissions SET corrections = corrections + 1, status = 'pending', attempt_count = 0,
		error_code = '', error_message = '', diagnostics = '', next_retry_at = '', updated_at = {:now} WHERE id = {:id}`, dbx.Params{"id": id, "now": Instant(now)})
}

// MeansAround are the means of a patient that were sent, or may have been, of periods in which one of the dates lies.
func MeansAround(app core.App, patientID, first, last string) ([]SentForm, error) {
	return queryAll[SentForm](app, "find means", `SELECT id, form, status, ambiguous, corrections, emr_resource_id FROM transmissions
		WHERE patient = {:patient} AND form = '`+FormMeanPressure+`' AND period_from <= {:last} AND period_to >= {:first} ORDER BY id`,
		dbx.Params{"patient": patientID, "first": first, "last": last})
}
