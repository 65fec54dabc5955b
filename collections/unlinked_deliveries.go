package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Reasons why a delivery waits.
const (
	WaitsForLink = "link" // until the EMR has the patient
	WaitsForTurn = "turn" // until the patient's earlier readings have been sent
)

// waitingFor starts the condition of the partial index of waiting deliveries.
const waitingFor = `waits_for != '' AND waits_for = `

const patientIsLinked = `EXISTS (SELECT 1 FROM patients p WHERE p.id = transmissions.patient AND p.external_id != '')`

// WaitForLink ends a lease without counting an attempt: the delivery waits until the patient is
// linked. If the patient is linked already, it is due again and linked is true. held is as in
// [FinishTransmission].
func WaitForLink(tx core.App, c LeasedTransmission, now time.Time) (held, linked bool, err error) {
	var waits string
	err = tx.NonconcurrentDB().NewQuery(`UPDATE transmissions SET status = 'pending', claimed_at = '', updated_at = {:now}, next_retry_at = '',
			error_code = '', error_message = '', diagnostics = '', waits_for = CASE WHEN ` + patientIsLinked + ` THEN '' ELSE 'link' END
		WHERE id = {:id} AND status = 'processing' AND claimed_at = {:claimed} RETURNING waits_for`).
		Bind(dbx.Params{"id": c.ID, "claimed": c.LeasedAt, "now": FormatInstant(now)}).Row(&waits)
	if IsNotFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, wrap(err, "wait for link")
	}
	if c.Form == FormReading {
		err = SetFHIRStatus(tx, c.ObservationID, FHIRPending, "", FormatInstant(now))
	}
	return true, waits == "", err
}

// MarkWaitingForLink makes a failed delivery wait until the EMR has the patient, in status failed. If the EMR has it already, it is queued
// again.
func MarkWaitingForLink(tx core.App, c LeasedTransmission, now time.Time) (linked bool, err error) {
	n, err := updateCounted(tx, "wait for link", Transmissions, dbx.Params{"waits_for": WaitsForLink},
		dbx.NewExp("id = {:id} AND NOT "+patientIsLinked, dbx.Params{"id": c.ID}))
	if err != nil || n > 0 {
		return false, err
	}
	return true, requeue(tx, "id = {:id}", dbx.Params{"id": c.ID, "now": FormatInstant(now)})
}

// ReleaseLinked queues, by time of measurement, all deliveries that waited for the EMR to have a patient, and those that the EMR rejected
// because it did not have the patient.
func ReleaseLinked(tx core.App, patientID string, now time.Time) error {
	err := requeue(tx, `patient = {:patient} AND (waits_for = 'link' AND status IN ('pending', 'failed')
		OR status = 'failed' AND error_code IN ('patient_not_found', 'patient_merged') AND corrections = 0 AND emr_resource_id = ''
			AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = transmissions.observation AND o.status IN ('entered_in_error', 'suspect')))`,
		dbx.Params{"patient": patientID, "now": FormatInstant(now)})
	if err == nil {
		_, err = ReleaseNextTurn(tx, patientID)
	}
	return err
}

// requeue queues deliveries with a full retry budget, and their observations; each waits for its turn.
func requeue(tx core.App, which string, params dbx.Params) error {
	err := exec(tx, "queue observations", `UPDATE observations SET fhir_status = 'pending', updated_at = {:now} WHERE fhir_status = 'failed'
		AND id IN (SELECT observation FROM transmissions WHERE form = '' AND `+which+`)`, params)
	if err != nil {
		return err
	}
	return exec(tx, "queue transmissions", `UPDATE transmissions SET status = 'pending', waits_for = 'turn', attempt_count = 0, next_retry_at = '',
		error_code = '', error_message = '', diagnostics = '', updated_at = {:now} WHERE `+which, params)
}

// ReleaseNextTurn makes the patient's earliest measured reading due that waits for its turn, if any.
func ReleaseNextTurn(tx core.App, patientID string) (released bool, err error) {
	n, err := execCounted(tx, "release the next turn", `UPDATE transmissions SET waits_for = '' WHERE id = (
		SELECT t.id FROM transmissions t LEFT JOIN observations o ON o.id = t.observation
		WHERE t.patient = {:patient} AND t.`+waitingFor+`'turn' ORDER BY COALESCE(o.measured_at, t.created_at), t.form, t.id LIMIT 1)`,
		dbx.Params{"patient": patientID})
	return n > 0, err
}

// PatientsWithStalledTurns returns the patients with readings that wait for their turn while none is due or in progress.
func PatientsWithStalledTurns(app core.App) ([]string, error) {
	return queryColumn[string](app, "find stalled turns", `SELECT DISTINCT t.patient FROM transmissions t WHERE t.`+waitingFor+`'turn' AND NOT EXISTS (
		SELECT 1 FROM transmissions u WHERE u.patient = t.patient AND u.status IN ('pending', 'processing') AND u.waits_for = '')`, nil)
}

// CountBlockedTransmissions counts the deliveries that wait for the EMR to have the patient, except those of deleted patients, who cannot be
// linked, and the ones that wait for their turn.
func CountBlockedTransmissions(app core.App) (forLink, forTurn int, err error) {
	err = app.DB().NewQuery(`SELECT (SELECT COUNT(*) FROM transmissions WHERE `+waitingFor+`'link' AND `+notDeleted+`),
		(SELECT COUNT(*) FROM transmissions WHERE `+waitingFor+`'turn')`).Row(&forLink, &forTurn)
	return forLink, forTurn, wrap(err, "count waiting transmissions")
}

// UnlinkedPatient is a patient without an EMR id, and the waiting deliveries.
type UnlinkedPatient struct {
	ID string `db:"id"`
	// Readings is the number of waiting deliveries, one for each form of a reading; Oldest is when the first of them was measured, or "".
	Readings int    `db:"readings"`
	Oldest   string `db:"oldest"`
}

// UnlinkedPatients returns a page of the patients without an EMR id who are active or have waiting deliveries, longest wait first, and the
// total. careTeamOf narrows to a user's care teams unless "".
func UnlinkedPatients(app core.App, careTeamOf string, offset, limit int) (page []UnlinkedPatient, total int, err error) {
	const of = ` FROM patients p LEFT JOIN (
			SELECT patient, COUNT(*) AS readings, MIN(queued) AS queued FROM (
				SELECT patient, created_at AS queued FROM transmissions WHERE ` + waitingFor + `'link'
				UNION ALL SELECT patient, created_at FROM transmissions WHERE ` + duePending + `)
			GROUP BY patient) w ON w.patient = p.id
		WHERE p.external_id = '' AND p.deleted_at = '' AND (p.active = TRUE OR w.readings > 0)
			AND ({:user} = '' OR p.primary_provider = {:user} OR p.id IN (SELECT patient FROM care_team_members WHERE user = {:user}))`
	params := dbx.Params{"user": careTeamOf, "offset": offset, "limit": limit}
	if total, err = queryValue[int](app, "count unlinked patients", `SELECT COUNT(*)`+of, dbx.Params{"user": careTeamOf}); err != nil {
		return nil, 0, err
	}
	page, err = queryAll[UnlinkedPatient](app, "find unlinked patients", `SELECT p.id, COALESCE(w.readings, 0) AS readings, COALESCE((
			SELECT MIN(o.measured_at) FROM transmissions t JOIN observations o ON o.id = t.observation
			WHERE t.patient = p.id AND t.form = '' AND (t.waits_for = 'link' OR t.status = 'pending')), '') AS oldest`+of+`
		ORDER BY w.queued IS NULL, w.queued, p.created_at, p.id LIMIT {:limit} OFFSET {:offset}`, params)
	return page, total, err
}
