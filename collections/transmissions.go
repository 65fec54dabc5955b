package collections

import (
	"context"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Transmission is the delivery of one observation to the EMR.
type Transmission struct{ patientRecord }

// AsTransmission converts a record of the transmissions.
func AsTransmission(record *core.Record) *Transmission { return as[Transmission](record) }

// FindTransmission finds a delivery by its number, TXN-<year>-<number>.
func FindTransmission(app core.App, id string) (*Transmission, error) {
	return find[Transmission](app, Transmissions, dbx.HashExp{"id": id})
}

func (t *Transmission) ObservationID() string { return t.GetString("observation") }

// ReadingID is the observation's id; "" for a document, which has none.
func (t *Transmission) ReadingID() string {
	if t.Form() == FormDocument {
		return ""
	}
	return t.ObservationID()
}

func (t *Transmission) Form() string                { return t.GetString("form") }
func (t *Transmission) WaitsFor() string            { return t.GetString("waits_for") }
func (t *Transmission) ObservationType() string     { return t.GetString("observation_type") }
func (t *Transmission) Status() string              { return t.GetString("status") }
func (t *Transmission) ErrorMessage() string        { return t.GetString("error_message") }
func (t *Transmission) ErrorCode() string           { return t.GetString("error_code") }
func (t *Transmission) AttemptCount() int           { return t.GetInt("attempt_count") }
func (t *Transmission) FirstAttemptedAt() time.Time { return instantOf(t, "first_attempted_at") }
func (t *Transmission) LastAttemptedAt() time.Time  { return instantOf(t, "last_attempted_at") }
func (t *Transmission) NextRetryAt() time.Time      { return instantOf(t, "next_retry_at") }

// The two ways to be due, as in their partial indexes.
const (
	duePending     = `status = 'pending' AND waits_for = ''`
	retryScheduled = `status = 'failed' AND next_retry_at != ''`
)

// TransmissionFilter narrows a list of deliveries; zero values do not narrow.
type TransmissionFilter struct {
	Status, PatientID string
	// From and To bound the last attempt, or the creation if there was none; both inclusive.
	From, To time.Time
	// CareTeamOf selects the patients of a user's care teams (record id).
	CareTeamOf string
	// CorrectionDue selects those with an open correction task.
	CorrectionDue bool
	ErrorCode     string
	// DeadLetter selects dead letters, or all others; nil selects both.
	DeadLetter *bool
}

// PageOfTransmissions returns a page of deliveries, newest first, and the total, which is a stored count if the filter has only a status.
func PageOfTransmissions(app core.App, f TransmissionFilter, offset, limit int) (page []*core.Record, total int, err error) {
	const newestFirst = "_rowid_ DESC" // rows are in the order of queuing
	total, err = f.count(app)
	if err != nil {
		return nil, 0, err
	}
	return f.conditions().PageOfUndeletedCounted(app, Transmissions, newestFirst, offset, limit, total)
}

// LeasedTransmission is a delivery that this worker has leased. No other worker sends it until its result is stored.
type LeasedTransmission struct {
	ID            string `db:"id"`
	ObservationID string `db:"observation"`
	PatientID     string `db:"patient"`
	AttemptCount  int    `db:"attempt_count"`
	// LeasedAt identifies this lease of the delivery.
	LeasedAt string `db:"claimed_at"`
	// Ambiguous: an earlier request may have reached the EMR.
	Ambiguous bool `db:"ambiguous"`
	// CreatedAt is when the observation and its delivery were stored.
	CreatedAt string `db:"created_at"`
	// Form is the form to send; From and To are the dates of a mean's period.
	Form string `db:"form"`
	From string `db:"period_from"`
	To   string `db:"period_to"`
	// DocumentFrom and DocumentTo are the half-open span of a document; the others are the version last sent, and the corrections that it follows.
	DocumentFrom    string `db:"document_from"`
	DocumentTo      string `db:"document_to"`
	DocumentAt      string `db:"document_at"`
	DocumentVersion int    `db:"document_version"`
	DocumentHash    string `db:"document_hash"`
	DocumentChange  int    `db:"document_change"`
	// EscalationID is the escalation that a document is about; "" for the report of a month.
	EscalationID string `db:"document_escalation"`
	// Corrections counts the changes that the EMR's copy must follow, or 0.
	Corrections int `db:"corrections"`
	// EMRID and SentHash identify the EMR's copy; "" if unknown.
	EMRID    string `db:"emr_resource_id"`
	SentHash string `db:"sent_hash"`
	// WaitsForEMR: the last failure was an EMR outage.
	WaitsForEMR bool `db:"waits_for_line"`
	// ErrorCode is the reason of the last failure, or "".
	ErrorCode string `db:"error_code"`
	// WasDeadLetter: it was a dead letter when a person requested it.
	WasDeadLetter bool `db:"-"`
	// Requested: a person requested it, due or not.
	Requested bool
}

// leasedColumns are the columns of a [LeasedTransmission].
const leasedColumns = `id, observation, patient, attempt_count, claimed_at, ambiguous, created_at, form, period_from, period_to, corrections, emr_resource_id, sent_hash, waits_for_line, error_code,
	document_from, document_to, document_at, document_version, document_hash, document_change, document_escalation`

// LeaseTransmissions moves up to limit due deliveries to processing, oldest first, except those attempted since a time.
func LeaseTransmissions(tx core.App, limit int, since, now time.Time) ([]LeasedTransmission, error) {
	// Each half reads only as much of its index as needed. With a limit of 1 SQLite would scan the whole index: hence limit + 1.
	return queryAll[LeasedTransmission](tx, "claim transmissions", `UPDATE transmissions SET status = 'processing', claimed_at = {:now}, updated_at = {:now}
		WHERE id IN (SELECT id FROM (
			SELECT * FROM (SELECT id, created_at FROM transmissions
				WHERE `+duePending+` AND last_attempted_at < {:since} ORDER BY created_at, id LIMIT {:limit} + 1)
			UNION ALL
			SELECT * FROM (SELECT id, created_at FROM transmissions
				WHERE `+retryScheduled+` AND next_retry_at <= {:now} AND last_attempted_at < {:since}
				ORDER BY next_retry_at LIMIT {:limit} + 1)
			) ORDER BY created_at, id LIMIT +{:limit})
		RETURNING `+leasedColumns,
		dbx.Params{"now": FormatInstant(now), "since": FormatInstant(since), "limit": limit})
}

// LeaseTransmissionOf moves the delivery of one observation to processing, due or not.
func LeaseTransmissionOf(tx core.App, observationID string, now time.Time) (c LeasedTransmission, err error) {
	what := dbx.Params{"now": FormatInstant(now), "observation": observationID}
	var deadLetter bool
	if err := tx.NonconcurrentDB().NewQuery(`SELECT status = 'failed' AND next_retry_at = '' FROM transmissions WHERE observation = {:observation} AND form = ''`).
		Bind(what).Row(&deadLetter); err != nil {
		return c, wrap(err, "claim transmission")
	}
	err = tx.NonconcurrentDB().NewQuery(`UPDATE transmissions SET status = 'processing', waits_for = '', claimed_at = {:now}, updated_at = {:now}
		WHERE observation = {:observation} AND form = '' AND status IN ('pending', 'failed')
		RETURNING ` + leasedColumns).Bind(what).One(&c)
	c.Requested, c.WasDeadLetter = true, deadLetter
	return c, wrap(err, "claim transmission")
}

// FinishedTransmission is the result of a delivery.
type FinishedTransmission struct {
	Status, ErrorCode, ErrorMessage, Diagnostics string // the diagnostics sealed
	NextRetryAt                                  time.Time
	Attempts                                     int
	Ambiguous, WaitsForEMR                       bool
	SameReason                                   bool   // keep the stored error
	EMRID, SentHash                              string // "" keeps the stored value
}

// FinishTransmission stores the result of a delivery and of its observation; held is false if the
// lease has expired. If the reading changed during the delivery, it is queued again and again is
// true.
func FinishTransmission(tx core.App, c LeasedTransmission, s FinishedTransmission, startedAt, now time.Time) (held, again bool, err error) {
	var status string
	err = tx.NonconcurrentDB().NewQuery(`UPDATE transmissions
		SET status = CASE WHEN {:status} = 'transmitted' AND corrections != {:followed} THEN 'pending' ELSE {:status} END,
			error_code = CASE WHEN {:keep} THEN error_code ELSE {:code} END, error_message = CASE WHEN {:keep} THEN error_message ELSE {:message} END,
			diagnostics = CASE WHEN {:keep} THEN diagnostics ELSE {:diagnostics} END, next_retry_at = {:next}, attempt_count = {:attempts},
			ambiguous = {:ambiguous}, waits_for_line = {:line}, claimed_at = '', updated_at = {:now}, last_attempted_at = {:started},
			first_attempted_at = CASE WHEN first_attempted_at = '' THEN {:started} ELSE first_attempted_at END,
			emr_resource_id = CASE WHEN {:emr} = '' THEN emr_resource_id ELSE {:emr} END,
			sent_hash = CASE WHEN {:hash} = '' THEN sent_hash ELSE {:hash} END
		WHERE id = {:id} AND status = 'processing' AND claimed_at = {:claimed}
		RETURNING status`).Bind(dbx.Params{
		"id": c.ID, "claimed": c.LeasedAt, "followed": c.Corrections, "status": s.Status, "keep": s.SameReason, "code": s.ErrorCode, "message": s.ErrorMessage, "diagnostics": s.Diagnostics,
		"next": FormatInstant(s.NextRetryAt), "attempts": s.Attempts, "ambiguous": s.Ambiguous, "line": s.WaitsForEMR, "now": FormatInstant(now), "started": FormatInstant(startedAt),
		"emr": s.EMRID, "hash": s.SentHash,
	}).Row(&status)
	if IsNotFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, wrap(err, "finish transmission")
	}
	again = status != s.Status
	if c.Form != FormReading {
		return true, again, nil
	}
	return true, again, SetFHIRStatus(tx, c.ObservationID, status, s.EMRID, FormatInstant(now))
}

// RecoverTransmissions makes deliveries in processing, except the named ones, pending and ambiguous, and returns their observations.
func RecoverTransmissions(tx core.App, but []string, now time.Time) ([]string, error) {
	return queryColumn[string](tx, "recover transmissions", `UPDATE transmissions
		SET status = 'pending', ambiguous = TRUE, claimed_at = '', next_retry_at = '', updated_at = {:now}
		WHERE status = 'processing' AND id NOT IN (SELECT value FROM json_each({:but}))
		RETURNING CASE form WHEN '' THEN observation ELSE '' END`, dbx.Params{"now": FormatInstant(now), "but": jsonList(but)})
}

// LeasedBefore lists deliveries in processing since before a time.
func LeasedBefore(app core.App, before time.Time) ([]LeasedTransmission, error) {
	return queryAll[LeasedTransmission](app, "find stuck transmissions", `SELECT `+strings.Replace(leasedColumns, "ambiguous", "TRUE AS ambiguous", 1)+`
		FROM transmissions WHERE status = 'processing' AND claimed_at <= {:before} ORDER BY claimed_at`, dbx.Params{"before": FormatInstant(before)})
}

// RequeueTransmission queues the delivery of an observation and the failed ones of its other forms; false if there is none.
func RequeueTransmission(tx core.App, observationID string, now time.Time) (found bool, err error) {
	n, err := updateCounted(tx, "queue transmission again", Transmissions, dbx.Params{
		"status": FHIRPending, "error_code": "", "error_message": "", "diagnostics": "", "next_retry_at": "", "updated_at": FormatInstant(now),
	}, dbx.NewExp("observation = {:observation} AND (form = '' OR status = 'failed')", dbx.Params{"observation": observationID}))
	return n > 0, err
}

// SetFHIRStatus sets an observation's FHIR status. An empty emrID keeps the stored one.
func SetFHIRStatus(tx core.App, observationID, status, emrID, at string) error {
	return exec(tx, "set FHIR status", `UPDATE observations SET fhir_status = {:status}, updated_at = {:at},
			emr_resource_id = CASE WHEN {:emr} = '' THEN emr_resource_id ELSE {:emr} END WHERE id = {:id}`, dbx.Params{"id": observationID, "status": status, "emr": emrID, "at": at})
}

// TransmissionAttempt is one request of a delivery to the EMR.
type TransmissionAttempt struct {
	StartedAt  string `db:"started_at"`
	DurationMS int64  `db:"duration_ms"`
	// StatusCode is the EMR's HTTP status; nil for no response.
	StatusCode *int   `db:"status_code"`
	RequestID  string `db:"request_id"`
	ErrorCode  string `db:"error_code"` // "" on success
}

// InsertTransmissionAttempt records an attempt of a delivery.
func InsertTransmissionAttempt(tx core.App, transmissionID string, a TransmissionAttempt) error {
	return exec(tx, "record attempt", `INSERT INTO transmission_attempts
			(transmission, started_at, duration_ms, status_code, request_id, error_code)
		VALUES ({:transmission}, {:started}, {:duration}, {:status}, {:request}, {:code})`, dbx.Params{
		"transmission": transmissionID, "started": a.StartedAt, "duration": a.DurationMS,
		"status": a.StatusCode, "request": a.RequestID, "code": a.ErrorCode,
	})
}

// AttemptsOfTransmission returns the attempts of a delivery, oldest first: up to six deliveries of up to four requests each, and the requested
// ones.
func AttemptsOfTransmission(app core.App, transmissionID string) ([]TransmissionAttempt, error) {
	return queryAll[TransmissionAttempt](app, "read attempts", `SELECT started_at, duration_ms, status_code, request_id, error_code FROM transmission_attempts
		WHERE transmission = {:id} ORDER BY started_at, rowid`,
		dbx.Params{"id": transmissionID})
}

// DueTransmissions counts the deliveries that are due, and those that wait for their turn.
func DueTransmissions(app core.App, now time.Time) (int, error) {
	return queryValue[int](app, "count due transmissions", `SELECT (SELECT COUNT(*) FROM transmissions WHERE `+duePending+`)
		+ (SELECT COUNT(*) FROM transmissions WHERE `+waitingFor+`'turn')
		+ (SELECT COUNT(*) FROM transmissions WHERE `+retryScheduled+` AND next_retry_at <= {:now})`, dbx.Params{"now": FormatInstant(now)})
}

// TransmissionBacklog counts deliveries by state: pending, in processing, and failed with a scheduled retry. Deliveries that wait for the EMR
// to have the patient are not included.
func TransmissionBacklog(app core.App) (pending, processing, awaitingRetry int, err error) {
	err = app.DB().NewQuery(`SELECT (SELECT COUNT(*) FROM transmissions WHERE `+duePending+`)
			+ (SELECT COUNT(*) FROM transmissions WHERE `+waitingFor+`'turn'),
		(SELECT COUNT(*) FROM transmissions WHERE status = 'processing'),
		(SELECT COUNT(*) FROM transmissions WHERE `+retryScheduled+`)`).Row(&pending, &processing, &awaitingRetry)
	return pending, processing, awaitingRetry, wrap(err, "count backlog")
}

// TransmissionsSince counts the deliveries last attempted since a moment, by result, and returns the last success, or zero. Deliveries that
// wait for the EMR to have the patient, or were retracted before sending, do not count as failed.
func TransmissionsSince(app core.App, since time.Time) (transmitted, failed int, last time.Time, err error) {
	var at string
	err = app.DB().NewQuery(`SELECT
		(SELECT COUNT(*) FROM transmissions WHERE status = 'transmitted' AND last_attempted_at >= {:since}),
		(SELECT COUNT(*) FROM transmissions WHERE status = 'failed' AND waits_for = '' AND error_code != '`+NeverSent+`' AND last_attempted_at >= {:since}),
		(SELECT COALESCE(MAX(last_attempted_at), '') FROM transmissions WHERE status = 'transmitted')`).
		Bind(dbx.Params{"since": FormatInstant(since)}).Row(&transmitted, &failed, &at)
	return transmitted, failed, ParseInstant(at), wrap(err, "count deliveries")
}

// NextTransmissionRetry returns the earliest scheduled retry, or zero.
func NextTransmissionRetry(app core.App) (time.Time, error) {
	at, err := queryValue[string](app, "find the next retry", `SELECT COALESCE(MIN(next_retry_at), '') FROM transmissions WHERE `+retryScheduled, nil)
	return ParseInstant(at), err
}

// OldestPendingTransmission returns when the oldest pending delivery was queued, or zero.
func OldestPendingTransmission(app core.App) (time.Time, error) {
	at, err := queryValue[string](app, "find the oldest pending transmission", `SELECT COALESCE(MIN(created_at), '') FROM transmissions WHERE `+duePending, nil)
	return ParseInstant(at), err
}

// ObservationDelivery is the delivery state of an observation.
type ObservationDelivery struct {
	Kind    string `db:"observation_type"`
	Patient string `db:"patient"`
	Status  string `db:"fhir_status"`
	Version int    `db:"fhir_version"`
	// Retracted: the reading was entered in error.
	Retracted bool `db:"retracted"`
	// Suspect: the reading may be another person's.
	Suspect bool `db:"suspect"`
	// HasCopy: the EMR has or may have a copy that must follow a change.
	HasCopy bool `db:"copied"`
}

// FindObservationDelivery returns the delivery state of an observation.
func FindObservationDelivery(tx core.App, observationID string) (o ObservationDelivery, err error) {
	err = tx.DB().NewQuery(`SELECT observation_type, patient, fhir_status, fhir_version, status = 'entered_in_error' AS retracted, status = 'suspect' AS suspect,
			EXISTS (SELECT 1 FROM transmissions t WHERE t.observation = observations.id AND t.form = '' AND t.corrections > 0
				AND (t.ambiguous OR t.emr_resource_id != '')) AS copied
		FROM observations WHERE id = {:id}`).Bind(dbx.Params{"id": observationID}).One(&o)
	return o, wrap(err, "find the observation")
}

// MarkTransformed stores the version of an observation's FHIR form and queues it.
func MarkTransformed(tx core.App, observationID string, version int, now time.Time) error {
	return update(tx, "mark transformed", Observations, dbx.Params{
		"fhir_status": FHIRPending, "fhir_version": version, "transformed_at": FormatInstant(now), "transform_error": "", "updated_at": FormatInstant(now),
	}, dbx.HashExp{"id": observationID})
}

// RecordTransformError stores why an observation has no FHIR form.
func RecordTransformError(tx core.App, observationID, because string) error {
	return update(tx, "record transform error", Observations, dbx.Params{"transform_error": because}, dbx.HashExp{"id": observationID})
}

// FailedTransforms returns up to limit observations that could not be converted to FHIR, oldest first.
func FailedTransforms(ctx context.Context, app core.App, limit int) (ids []string, err error) {
	err = app.DB().NewQuery(`SELECT id FROM observations WHERE transform_error != '' AND fhir_status = ''
		ORDER BY created_at LIMIT +{:limit}`).Bind(dbx.Params{"limit": limit}).WithContext(ctx).Column(&ids)
	return ids, wrap(err, "find failed transforms")
}
