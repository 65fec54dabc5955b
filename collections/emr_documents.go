package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// FormDocument is the report of a period as a document in the patient's chart.
const FormDocument = "document"

// WaitsForDeliveryMode: suspended until the EMR accepts readings one by one, or a document has the reading.
const WaitsForDeliveryMode = "way"

// InDocument replaces the sent hash of a reading that a document at the EMR has: there is no copy
// of the reading itself.
const InDocument = "in a document"

const (
	isReading = `form != '` + FormDocument + `'`
	// neverSent: the EMR has no copy, and none is in doubt.
	neverSent = `emr_resource_id = '' AND sent_hash = '' AND NOT ambiguous AND corrections = 0`
	// suspendedReading are readings that wait for a way.
	suspendedReading = waitingFor + `'` + WaitsForDeliveryMode + `'`
	// isCovered: a reading was measured in the period of a document.
	isCovered = `o.patient = t.patient AND o.measured_at >= t.document_from AND o.measured_at < t.document_to`
)

// SuspendReadings suspends the readings that were never sent. It writes nothing if there are none.
func SuspendReadings(app core.App, now time.Time) error {
	const which = `(` + duePending + ` OR ` + waitingFor + `'` + WaitsForTurn + `' AND status = 'pending' OR ` + retryScheduled + `) AND ` + isReading + ` AND ` + neverSent
	has, err := queryValue[bool](app, "find readings without a way", `SELECT EXISTS (SELECT 1 FROM transmissions WHERE `+which+`)`, nil)
	if err != nil || !has {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error { return setReadings(tx, which, WaitsForDeliveryMode, now) })
}

// ResumeReadings queues the suspended readings in order of measurement, except those that a
// document has.
func ResumeReadings(app core.App, now time.Time) error {
	const which = suspendedReading + ` AND status IN ('pending', 'failed') AND ` + neverSent
	has, err := queryValue[bool](app, "find parked readings", `SELECT EXISTS (SELECT 1 FROM transmissions WHERE `+which+`)`, nil)
	if err != nil || !has {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error { return setReadings(tx, which, WaitsForTurn, now) })
}

// setReadings makes deliveries and their observations pending, with all retries.
func setReadings(tx core.App, which, waitsFor string, now time.Time) error {
	params := dbx.Params{"now": FormatInstant(now), "waits": waitsFor}
	err := exec(tx, "queue observations", `UPDATE observations SET fhir_status = 'pending', updated_at = {:now} WHERE fhir_status = 'failed'
		AND id IN (SELECT observation FROM transmissions WHERE form = '' AND status = 'failed' AND `+which+`)`, params)
	if err != nil {
		return err
	}
	return exec(tx, "set what readings wait for", `UPDATE transmissions SET status = 'pending', waits_for = {:waits}, attempt_count = 0, next_retry_at = '',
		waits_for_line = FALSE, error_code = '', error_message = '', diagnostics = '', updated_at = {:now} WHERE `+which, params)
}

// CountSuspendedReadings counts the readings that wait for a way.
func CountSuspendedReadings(app core.App) (int, error) {
	return queryValue[int](app, "count parked readings", `SELECT COUNT(*) FROM transmissions WHERE `+suspendedReading, nil)
}

// OldestSuspendedReading returns when the earliest reading was measured that waits for a way and was stored before a time; zero for none.
func OldestSuspendedReading(app core.App, before time.Time) (time.Time, error) {
	at, err := queryValue[string](app, "find the oldest parked reading", `SELECT COALESCE(MIN(o.measured_at), '') FROM transmissions t
		JOIN observations o ON o.id = t.observation WHERE t.`+suspendedReading+` AND t.status != 'failed' AND o.measured_at < {:before}`, dbx.Params{"before": FormatInstant(before)})
	return ParseInstant(at), err
}

// PatientsToReport returns the patients with trusted readings in a half-open span; with parkedOnly
// only those with a suspended reading in it.
func PatientsToReport(app core.App, from, to time.Time, parkedOnly bool) ([]string, error) {
	waits := ""
	if parkedOnly {
		waits = ` AND EXISTS (SELECT 1 FROM transmissions t WHERE t.observation = o.id AND t.form = '' AND t.` + suspendedReading + `)`
	}
	return queryColumn[string](app, "find patients to report", `SELECT p.id FROM patients p WHERE p.deleted_at = '' AND EXISTS (SELECT 1 FROM observations o
		WHERE o.patient = p.id AND `+anyKind(app)+` AND o.measured_at >= {:from} AND o.measured_at < {:to}
			AND o.status = 'final' AND o.review_state != 'suspect'`+waits+`) ORDER BY p.id`, dbx.Params{"from": FormatInstant(from), "to": FormatInstant(to)})
}

// FindDocument returns the delivery of a document; ok is false if there is none.
func FindDocument(app core.App, id string) (c LeasedTransmission, status string, ok bool, err error) {
	return sentForm(app, id, FormDocument)
}

// HasNewReadings reports whether a document lacks trusted readings of its period that were stored or confirmed after it was made.
func HasNewReadings(app core.App, transmissionID string) (bool, error) {
	return queryValue[bool](app, "find new readings", `SELECT EXISTS (SELECT 1 FROM transmissions t JOIN observations o ON `+isCovered+hasNewReading+` WHERE t.id = {:id})`,
		dbx.Params{"id": transmissionID})
}

const hasNewReading = ` AND o.status = 'final' AND o.review_state != 'suspect' AND (o.created_at > t.document_at OR o.confirmed_at > t.document_at)`

// OutdatedDocuments returns the delivered documents of periods that began since a time and ended, which lack readings.
func OutdatedDocuments(app core.App, since, now time.Time) ([]string, error) {
	return queryColumn[string](app, "find outdated documents", `SELECT t.id FROM transmissions t WHERE t.form = '`+FormDocument+`' AND t.status = 'transmitted'
		AND t.document_from >= {:since} AND t.document_to <= {:now} AND EXISTS (SELECT 1 FROM observations o WHERE `+isCovered+hasNewReading+`) ORDER BY t.id`,
		dbx.Params{"since": FormatInstant(since), "now": FormatInstant(now)})
}

// DocumentsCovering returns the documents of periods with an observation's time of measurement.
func DocumentsCovering(app core.App, observationID string) ([]FormDelivery, error) {
	return queryAll[FormDelivery](app, "find documents", `SELECT t.id, t.form, t.status, t.ambiguous, t.corrections, t.emr_resource_id, t.sent_hash, t.waits_for
		FROM observations o JOIN transmissions t ON t.form = '`+FormDocument+`' AND `+isCovered+` WHERE o.id = {:id} ORDER BY t.id`, dbx.Params{"id": observationID})
}

// StageDocument stores the version that is about to be sent, so that it can be searched for if its outcome is unknown; held is as in
// [FinishTransmission].
func StageDocument(tx core.App, c LeasedTransmission, now time.Time) (held bool, err error) {
	n, err := execCounted(tx, "stage document", `UPDATE transmissions SET document_version = {:version}, document_hash = {:hash}, document_at = {:at},
			document_change = {:change}, updated_at = {:now} WHERE id = {:id} AND status = 'processing' AND claimed_at = {:claimed}`,
		dbx.Params{"id": c.ID, "claimed": c.LeasedAt, "version": c.DocumentVersion, "hash": c.DocumentHash, "at": c.DocumentAt, "change": c.Corrections, "now": FormatInstant(now)})
	return n > 0, err
}

// MarkReadingsInDocument marks the readings that a delivered document contains as transmitted.
func MarkReadingsInDocument(tx core.App, transmissionID string, now time.Time) error {
	const held = ` FROM transmissions d WHERE d.id = {:id} AND o.patient = d.patient AND o.measured_at >= d.document_from AND o.measured_at < d.document_to
		AND o.created_at <= d.document_at AND o.review_state != 'suspect'`
	params := dbx.Params{"id": transmissionID, "now": FormatInstant(now), "held": InDocument}
	err := exec(tx, "hold observations", `UPDATE observations AS o SET fhir_status = 'transmitted', updated_at = {:now}`+held+`
		AND EXISTS (SELECT 1 FROM transmissions t WHERE t.observation = o.id AND t.form = '' AND t.`+suspendedReading+`)`, params)
	if err != nil {
		return err
	}
	return exec(tx, "hold readings", `UPDATE transmissions SET status = 'transmitted', waits_for = '', sent_hash = {:held}, error_code = '', error_message = '',
		diagnostics = '', updated_at = {:now} WHERE `+isReading+` AND `+suspendedReading+` AND observation IN (SELECT o.id FROM observations o, transmissions d
			WHERE d.id = {:id} AND o.patient = d.patient AND o.measured_at >= d.document_from AND o.measured_at < d.document_to
				AND o.created_at <= d.document_at AND o.review_state != 'suspect')`, params)
}

// WaitForCorrectedDocument keeps a changed reading of a sent document pending until the corrected document
// is delivered.
func WaitForCorrectedDocument(tx core.App, id string, now time.Time) error {
	return update(tx, "follow in a document", Transmissions, dbx.Params{"status": FHIRPending, "waits_for": WaitsForDeliveryMode, "updated_at": FormatInstant(now)}, dbx.HashExp{"id": id})
}

// SetDocument stores the half-open span that a queued document covers, and the escalation that it is about.
func SetDocument(tx core.App, id, escalationID string, from, to time.Time) error {
	return update(tx, "store the period of a document", Transmissions,
		dbx.Params{"document_from": FormatInstant(from), "document_to": FormatInstant(to), "document_escalation": escalationID}, dbx.HashExp{"id": id})
}

// HasTrustedReadings reports whether a patient has trusted readings in a half-open span.
func HasTrustedReadings(app core.App, patientID string, from, to time.Time) (bool, error) {
	return queryValue[bool](app, "find readings to report", `SELECT EXISTS (SELECT 1 FROM observations o WHERE o.patient = {:patient} AND `+anyKind(app)+`
		AND o.measured_at >= {:from} AND o.measured_at < {:to} AND o.status = 'final' AND o.review_state != 'suspect')`,
		dbx.Params{"patient": patientID, "from": FormatInstant(from), "to": FormatInstant(to)})
}
