package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

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
