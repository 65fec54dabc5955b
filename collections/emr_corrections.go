package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// correctionDue selects deliveries with an open correction task for the EMR's copy. It is the condition of the partial index.
const correctionDue = `correction_due_at != '' AND correction_closed_at = ''`

func (t *Transmission) CorrectionDueAt() time.Time    { return instantOf(t, "correction_due_at") }
func (t *Transmission) CorrectionClosedAt() time.Time { return instantOf(t, "correction_closed_at") }
func (t *Transmission) CorrectionClosedBy() string    { return t.GetString("correction_closed_by") }
func (t *Transmission) CorrectionNote() phi.Text {
	return phi.Text(TextOf(t.ProxyRecord(), "correction_note"))
}

// OpenCorrection opens a manual correction task for the EMR's copy. An open task stays; a closed one is reopened only by a later change.
func OpenCorrection(tx core.App, id string, now time.Time) error {
	return exec(tx, "open correction", `UPDATE transmissions SET correction_due_at = {:now}, correction_closed_at = '', correction_closed_by = '',
			correction_note = '', updated_at = {:now}
		WHERE id = {:id} AND (correction_due_at = '' OR correction_closed_at != '' AND corrections > correction_closed_at_change)`,
		dbx.Params{"id": id, "now": FormatInstant(now)})
}

// CancelCorrection removes the task after the EMR's copy has become correct.
func CancelCorrection(tx core.App, id string) error {
	return exec(tx, "drop correction", `UPDATE transmissions SET correction_due_at = '', correction_closed_at = '', correction_closed_by = '',
		correction_note = '' WHERE id = {:id} AND correction_due_at != ''`, dbx.Params{"id": id})
}

// CloseCorrection records that a person corrected the EMR's copy. closed is false if no task was open.
func CloseCorrection(tx core.App, id, by string, note phi.Text, now time.Time) (closed bool, err error) {
	sealed, err := Seal(note.Reveal(), "transmissions.correction_note", id)
	if err != nil {
		return false, fmt.Errorf("seal note: %w", err)
	}
	n, err := execCounted(tx, "close correction", `UPDATE transmissions SET correction_closed_at = {:now}, correction_closed_by = {:by}, correction_note = {:note},
		correction_closed_at_change = corrections, updated_at = {:now} WHERE id = {:id} AND `+correctionDue,
		dbx.Params{"id": id, "by": by, "note": sealed, "now": FormatInstant(now)})
	return n > 0, err
}

// CountCorrectionsDue counts the open correction tasks, with the same conditions as their list.
func CountCorrectionsDue(app core.App) (int, error) {
	return queryValue[int](app, "count corrections", `SELECT COUNT(*) FROM transmissions WHERE `+correctionDue+` AND `+notDeleted, nil)
}

// Forms of a delivery: the reading itself, the heart rate that is sent separately, and the mean of many readings.
const (
	FormReading      = ""
	FormHeartRate    = "heart_rate"
	FormMeanPressure = "mean_blood_pressure"
)

// FormDelivery is the delivery of one form of an observation, as a change of the observation needs it.
type FormDelivery struct {
	ID          string `db:"id"`
	Form        string `db:"form"`
	Status      string `db:"status"`
	Ambiguous   bool   `db:"ambiguous"`
	Corrections int    `db:"corrections"`
	EMRID       string `db:"emr_resource_id"`
	SentHash    string `db:"sent_hash"`
	WaitsFor    string `db:"waits_for"`
}

// FormDeliveries returns the deliveries of all forms of an observation.
func FormDeliveries(app core.App, observationID string) ([]FormDelivery, error) {
	return queryAll[FormDelivery](app, "find transmissions", `SELECT id, form, status, ambiguous, corrections, emr_resource_id, sent_hash, waits_for
		FROM transmissions WHERE observation = {:id} ORDER BY id`, dbx.Params{"id": observationID})
}

// DeleteUnattempted deletes the deliveries of an observation that were not attempted, and reports whether that of the reading was one.
func DeleteUnattempted(tx core.App, observationID string) (deleted bool, err error) {
	const unattempted = `observation = {:id} AND status = 'pending' AND attempt_count = 0 AND corrections = 0 AND NOT ambiguous AND emr_resource_id = ''
		AND sent_hash = ''`
	params := dbx.Params{"id": observationID}
	deleted, err = queryValue[bool](tx, "find an unattempted transmission", `SELECT EXISTS (SELECT 1 FROM transmissions WHERE form = '' AND `+unattempted+`)`, params)
	if err != nil {
		return false, err
	}
	return deleted, exec(tx, "delete unattempted transmissions", `DELETE FROM transmissions WHERE `+unattempted, params)
}

// StopTransmission ends a delivery before anything was sent.
func StopTransmission(tx core.App, id, code, message string, now time.Time) error {
	return update(tx, "stop transmission", Transmissions, dbx.Params{
		"status": FHIRFailed, "waits_for": "", "next_retry_at": "", "error_code": code, "error_message": message, "diagnostics": "", "updated_at": FormatInstant(now),
	}, dbx.HashExp{"id": id})
}

// AddCorrection records one more change that the EMR's copy must follow, without touching a delivery in progress.
func AddCorrection(tx core.App, id string, now time.Time) error {
	return exec(tx, "count correction", `UPDATE transmissions SET corrections = corrections + 1, updated_at = {:now} WHERE id = {:id}`,
		dbx.Params{"id": id, "now": FormatInstant(now)})
}

// QueueCorrection is AddCorrection and queues the delivery now, with a full retry budget. An unknown outcome stays one until the copy is found.
func QueueCorrection(tx core.App, id string, now time.Time) error {
	return exec(tx, "queue correction", `UPDATE transmissions SET corrections = corrections + 1, status = 'pending', attempt_count = 0,
		error_code = CASE WHEN error_code = '`+OutcomeUnknown+`' AND emr_resource_id = '' THEN error_code ELSE '' END,
		error_message = CASE WHEN error_code = '`+OutcomeUnknown+`' AND emr_resource_id = '' THEN error_message ELSE '' END,
		diagnostics = '', next_retry_at = '', updated_at = {:now} WHERE id = {:id}`, dbx.Params{"id": id, "now": FormatInstant(now)})
}

// MeansCovering returns a patient's sent or unconfirmed means for periods that overlap the dates.
func MeansCovering(app core.App, patientID, first, last string) ([]FormDelivery, error) {
	return queryAll[FormDelivery](app, "find means", `SELECT id, form, status, ambiguous, corrections, emr_resource_id FROM transmissions
		WHERE patient = {:patient} AND form = '`+FormMeanPressure+`' AND period_from <= {:last} AND period_to >= {:first} ORDER BY id`,
		dbx.Params{"patient": patientID, "first": first, "last": last})
}
