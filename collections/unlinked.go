package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// What a transmission may wait for besides its time.
const (
	WaitsForLink = "link" // until the EMR knows the patient
	WaitsForTurn = "turn" // until others of the patient that were measured before have been sent
)

// waitingFor is what the partial index of those that wait for something wants to hear.
const waitingFor = `waits_for != '' AND waits_for = `

const patientIsLinked = `EXISTS (SELECT 1 FROM patients p WHERE p.id = transmissions.patient AND p.external_id != '')`

// HoldForLink puts a claimed transmission back: nothing was attempted, and it waits until the EMR knows the patient. Where it does meanwhile it is
// due again, which linked says. held is as in [FinishTransmission].
func HoldForLink(tx core.App, c ClaimedTransmission, now time.Time) (held, linked bool, err error) {
	var waits string
	err = tx.NonconcurrentDB().NewQuery(`UPDATE transmissions SET status = 'pending', claimed_at = '', updated_at = {:now}, next_retry_at = '',
			error_code = '', error_message = '', diagnostics = '', waits_for = CASE WHEN ` + patientIsLinked + ` THEN '' ELSE 'link' END
		WHERE id = {:id} AND status = 'processing' AND claimed_at = {:claimed} RETURNING waits_for`).
		Bind(dbx.Params{"id": c.ID, "claimed": c.ClaimedAt, "now": Instant(now)}).Row(&waits)
	if Missing(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, wrap(err, "hold transmission")
	}
	if c.Form == FormReading {
		err = SetFHIRStatus(tx, c.ObservationID, FHIRPending, "", Instant(now))
	}
	return true, waits == "", err
}

// AwaitLink has a transmission that failed because the EMR does not know the patient wait for that, though it stands as failed. Where the EMR does
// meanwhile it is queued again.
func AwaitLink(tx core.App, c ClaimedTransmission, now time.Time) (linked bool, err error) {
	n, err := updateCounted(tx, "hold transmission", Transmissions, dbx.Params{"waits_for": WaitsForLink},
		dbx.NewExp("id = {:id} AND NOT "+patientIsLinked, dbx.Params{"id": c.ID}))
	if err != nil || n > 0 {
		return false, err
	}
	return true, queueAgain(tx, "id = {:id}", dbx.Params{"id": c.ID, "now": Instant(now)})
}

// ReleaseLinked queues, in order of measurement, all that waited until the EMR knew a patient, and what it did not take because it did not know
// whom it had been told of.
func ReleaseLinked(tx core.App, patientID string, now time.Time) error {
	err := queueAgain(tx, `patient = {:patient} AND (waits_for = 'link' AND status IN ('pending', 'failed')
		OR status = 'failed' AND error_code IN ('patient_not_found', 'patient_merged') AND corrections = 0 AND emr_resource_id = ''
			AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = transmissions.observation AND o.status IN ('entered_in_error', 'suspect')))`,
		dbx.Params{"patient": patientID, "now": Instant(now)})
	if err == nil {
		_, err = NextTurn(tx, patientID)
	}
	return err
}

// queueAgain queues transmissions with all their retries before them, and their observations with them; each has its turn.
func queueAgain(tx core.App, which string, params dbx.Params) error {
	err := exec(tx, "queue observations", `UPDATE observations SET fhir_status = 'pending', updated_at = {:now} WHERE fhir_status = 'failed'
		AND id IN (SELECT observation FROM transmissions WHERE form = '' AND `+which+`)`, params)
	if err != nil {
		return err
	}
	return exec(tx, "queue transmissions", `UPDATE transmissions SET status = 'pending', waits_for = 'turn', attempt_count = 0, next_retry_at = '',
		error_code = '', error_message = '', diagnostics = '', updated_at = {:now} WHERE `+which, params)
}

// NextTurn makes due the reading of a patient that was measured first of those that wait for their turn, if any.
func NextTurn(tx core.App, patientID string) (released bool, err error) {
	n, err := change(tx, "take the next turn", `UPDATE transmissions SET waits_for = '' WHERE id = (
		SELECT t.id FROM transmissions t LEFT JOIN observations o ON o.id = t.observation
		WHERE t.patient = {:patient} AND t.`+waitingFor+`'turn' ORDER BY COALESCE(o.measured_at, t.created_at), t.form, t.id LIMIT 1)`,
		dbx.Params{"patient": patientID})
	return n > 0, err
}

// StalledTurns are the patients whose readings wait for their turn while none of them is due or under way.
func StalledTurns(app core.App) ([]string, error) {
	return queryColumn[string](app, "find stalled turns", `SELECT DISTINCT t.patient FROM transmissions t WHERE t.`+waitingFor+`'turn' AND NOT EXISTS (
		SELECT 1 FROM transmissions u WHERE u.patient = t.patient AND u.status IN ('pending', 'processing') AND u.waits_for = '')`, nil)
}

// HeldTransmissions counts those that wait until the EMR knows the patient, but for deleted patients, whom nobody can link, and those that wait for
// their turn.
func HeldTransmissions(app core.App) (forLink, forTurn int, err error) {
	err = app.DB().NewQuery(`SELECT (SELECT COUNT(*) FROM transmissions WHERE `+waitingFor+`'link' AND `+notDeleted+`),
		(SELECT COUNT(*) FROM transmissions WHERE `+waitingFor+`'turn')`).Row(&forLink, &forTurn)
	return forLink, forTurn, wrap(err, "count held transmissions")
}

// UnlinkedPatient is a patient whom the EMR does not know, and what waits for that.
type UnlinkedPatient struct {
	ID string `db:"id"`
	// Readings is how many deliveries wait, whatever is made of a reading counted by itself; Oldest is when the first of them was measured, "" when there is none.
	Readings int    `db:"readings"`
	Oldest   string `db:"oldest"`
}

// UnlinkedPatients returns a page of the patients whom the EMR does not know and who are monitored or have readings that wait, those who wait
// longest first, and how many there are. careTeamOf keeps the patients of a user's care teams; "" keeps all.
func UnlinkedPatients(app core.App, careTeamOf string, offset, limit int) (page []UnlinkedPatient, total int, err error) {
	const of = ` FROM patients p LEFT JOIN (
			SELECT patient, COUNT(*) AS readings, MIN(queued) AS queued FROM (
				SELECT patient, created_at AS queued FROM transmissions WHERE ` + waitingFor + `'link'
				UNION ALL SELECT patient, created_at FROM transmissions WHERE ` + waiting + `)
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
