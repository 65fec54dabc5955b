package collections

import (
	"context"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Transmission is the delivery of one observation to the EMR.
type Transmission struct{ aboutPatient }

// AsTransmission reads a record of the transmissions as one.
func AsTransmission(record *core.Record) *Transmission { return as[Transmission](record) }

// FindTransmission finds one transmission by its number, TXN-<year>-<number>.
func FindTransmission(app core.App, id string) (*Transmission, error) {
	return find[Transmission](app, Transmissions, dbx.HashExp{"id": id})
}

func (t *Transmission) ObservationID() string       { return t.GetString("observation") }
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

// The two ways to be due, as their partial indexes have them.
const (
	waiting  = `status = 'pending' AND waits_for = ''`
	retrying = `status = 'failed' AND next_retry_at != ''`
)

// TransmissionFilter narrows a list of transmissions; zero values do not.
type TransmissionFilter struct {
	Status, PatientID string
	// From and To bound the last attempt, else the creation; both inclusive.
	From, To time.Time
	// CareTeamOf keeps the patients whose care team this user (record id) belongs to.
	CareTeamOf string
	// CorrectionDue keeps those whose copy at the EMR a person is to correct.
	CorrectionDue bool
	ErrorCode     string
	// GivenUp keeps those that are not tried again by themselves, or all others; nil keeps both.
	GivenUp *bool
}

// PageOfTransmissions returns a page of transmissions, newest first, and how many there are in all. Where only a status is asked for, the count
// is one that is kept.
func PageOfTransmissions(app core.App, f TransmissionFilter, offset, limit int) (page []*core.Record, total int, err error) {
	const newestFirst = "_rowid_ DESC" // they were queued in the order of their rows
	total, err = f.count(app)
	if err != nil {
		return nil, 0, err
	}
	return f.conditions().PageOfPatientsAmong(app, Transmissions, newestFirst, offset, limit, total)
}

// ClaimedTransmission is one that this worker has taken: nobody else sends it until its end is stored.
type ClaimedTransmission struct {
	ID            string `db:"id"`
	ObservationID string `db:"observation"`
	PatientID     string `db:"patient"`
	AttemptCount  int    `db:"attempt_count"`
	// ClaimedAt tells this claim from a later one of the same record.
	ClaimedAt string `db:"claimed_at"`
	// Ambiguous: an earlier send may have reached the EMR.
	Ambiguous bool `db:"ambiguous"`
	// CreatedAt is when the observation was stored, and with it the intent to deliver it.
	CreatedAt string `db:"created_at"`
	// Form is what is sent of it; From and To are the dates of a mean's period.
	Form string `db:"form"`
	From string `db:"period_from"`
	To   string `db:"period_to"`
	// Corrections counts the changes that the EMR's copy is to follow; 0 while there is none to follow.
	Corrections int `db:"corrections"`
	// EMRID and SentHash tell of what the EMR has; "" while that is not known.
	EMRID    string `db:"emr_resource_id"`
	SentHash string `db:"sent_hash"`
	// WaitsForLine: what failed last was the line to the EMR.
	WaitsForLine bool `db:"waits_for_line"`
	// ErrorCode is why it failed last; "" when it did not.
	ErrorCode string `db:"error_code"`
	// GivenUp: it had been given up when somebody asked for it.
	GivenUp bool `db:"-"`
	// Asked: a person asked for it, due or not.
	Asked bool
}

// claimed are the columns of a [ClaimedTransmission].
const claimed = `id, observation, patient, attempt_count, claimed_at, ambiguous, created_at, form, period_from, period_to, corrections, emr_resource_id, sent_hash, waits_for_line, error_code`

// ClaimTransmissions moves up to limit due transmissions to processing, oldest first, but those attempted since a time.
func ClaimTransmissions(tx core.App, limit int, since, now time.Time) ([]ClaimedTransmission, error) {
	// Each half walks its own index no further than needed, whatever the backlog. With a limit of just one SQLite would walk
	// it to the end: hence one more.
	return queryAll[ClaimedTransmission](tx, "claim transmissions", `UPDATE transmissions SET status = 'processing', claimed_at = {:now}, updated_at = {:now}
		WHERE id IN (SELECT id FROM (
			SELECT * FROM (SELECT id, created_at FROM transmissions
				WHERE `+waiting+` AND last_attempted_at < {:since} ORDER BY created_at, id LIMIT {:limit} + 1)
			UNION ALL
			SELECT * FROM (SELECT id, created_at FROM transmissions
				WHERE `+retrying+` AND next_retry_at <= {:now} AND last_attempted_at < {:since}
				ORDER BY next_retry_at LIMIT {:limit} + 1)
			) ORDER BY created_at, id LIMIT +{:limit})
		RETURNING `+claimed,
		dbx.Params{"now": Instant(now), "since": Instant(since), "limit": limit})
}

// ClaimTransmissionOf moves the transmission of one observation to processing, due or not.
func ClaimTransmissionOf(tx core.App, observationID string, now time.Time) (c ClaimedTransmission, err error) {
	what := dbx.Params{"now": Instant(now), "observation": observationID}
	var givenUp bool
	if err := tx.NonconcurrentDB().NewQuery(`SELECT status = 'failed' AND next_retry_at = '' FROM transmissions WHERE observation = {:observation} AND form = ''`).
		Bind(what).Row(&givenUp); err != nil {
		return c, wrap(err, "claim transmission")
	}
	err = tx.NonconcurrentDB().NewQuery(`UPDATE transmissions SET status = 'processing', waits_for = '', claimed_at = {:now}, updated_at = {:now}
		WHERE observation = {:observation} AND form = '' AND status IN ('pending', 'failed')
		RETURNING ` + claimed).Bind(what).One(&c)
	c.Asked, c.GivenUp = true, givenUp
	return c, wrap(err, "claim transmission")
}

// FinishedTransmission is what the end of a delivery makes of its record.
type FinishedTransmission struct {
	Status, ErrorCode, ErrorMessage, Diagnostics string // the diagnostics sealed
	NextRetryAt                                  time.Time
	Attempts                                     int
	Ambiguous, WaitsForLine                      bool
	SameReason                                   bool   // the error stays the one that is there
	EMRID, SentHash                              string // "" keeps what is there
}

// FinishTransmission stores the end of a delivery, in the transmission and its observation; not held when the claim has lapsed. What was
// delivered before a change that came meanwhile waits again, for that: then again is true.
func FinishTransmission(tx core.App, c ClaimedTransmission, s FinishedTransmission, startedAt, now time.Time) (held, again bool, err error) {
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
		"id": c.ID, "claimed": c.ClaimedAt, "followed": c.Corrections, "status": s.Status, "keep": s.SameReason, "code": s.ErrorCode, "message": s.ErrorMessage, "diagnostics": s.Diagnostics,
		"next": Instant(s.NextRetryAt), "attempts": s.Attempts, "ambiguous": s.Ambiguous, "line": s.WaitsForLine, "now": Instant(now), "started": Instant(startedAt),
		"emr": s.EMRID, "hash": s.SentHash,
	}).Row(&status)
	if Missing(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, wrap(err, "finish transmission")
	}
	again = status != s.Status
	if c.Form != FormReading {
		return true, again, nil
	}
	return true, again, SetFHIRStatus(tx, c.ObservationID, status, s.EMRID, Instant(now))
}

// RecoverTransmissions makes pending again, as ambiguous, whatever is in processing but the named ones, and returns their observations.
func RecoverTransmissions(tx core.App, but []string, now time.Time) ([]string, error) {
	return queryColumn[string](tx, "recover transmissions", `UPDATE transmissions
		SET status = 'pending', ambiguous = TRUE, claimed_at = '', next_retry_at = '', updated_at = {:now}
		WHERE status = 'processing' AND id NOT IN (SELECT value FROM json_each({:but}))
		RETURNING CASE form WHEN '' THEN observation ELSE '' END`, dbx.Params{"now": Instant(now), "but": jsonList(but)})
}

// ClaimedBefore lists what has been in processing since before a time.
func ClaimedBefore(app core.App, before time.Time) ([]ClaimedTransmission, error) {
	return queryAll[ClaimedTransmission](app, "find stuck transmissions", `SELECT `+strings.Replace(claimed, "ambiguous", "TRUE AS ambiguous", 1)+`
		FROM transmissions WHERE status = 'processing' AND claimed_at <= {:before} ORDER BY claimed_at`, dbx.Params{"before": Instant(before)})
}

// RequeueTransmission makes the transmission of an observation pending, and with it what was given up of its other forms; false when there
// is none.
func RequeueTransmission(tx core.App, observationID string, now time.Time) (found bool, err error) {
	n, err := updateCounted(tx, "queue transmission again", Transmissions, dbx.Params{
		"status": FHIRPending, "error_code": "", "error_message": "", "diagnostics": "", "next_retry_at": "", "updated_at": Instant(now),
	}, dbx.NewExp("observation = {:observation} AND (form = '' OR status = 'failed')", dbx.Params{"observation": observationID}))
	return n > 0, err
}

// SetFHIRStatus moves an observation to a FHIR status. emrID is kept when there is one and does not clear an older one.
func SetFHIRStatus(tx core.App, observationID, status, emrID, at string) error {
	return exec(tx, "set FHIR status", `UPDATE observations SET fhir_status = {:status}, updated_at = {:at},
			emr_resource_id = CASE WHEN {:emr} = '' THEN emr_resource_id ELSE {:emr} END WHERE id = {:id}`, dbx.Params{"id": observationID, "status": status, "emr": emrID, "at": at})
}

// TransmissionAttempt is one request of a transmission that left for the EMR.
type TransmissionAttempt struct {
	StartedAt  string `db:"started_at"`
	DurationMS int64  `db:"duration_ms"`
	// StatusCode is the HTTP status of the EMR; nil when it did not answer.
	StatusCode *int   `db:"status_code"`
	RequestID  string `db:"request_id"`
	ErrorCode  string `db:"error_code"` // "" on success
}

// InsertTransmissionAttempt adds a line to the ledger of a transmission.
func InsertTransmissionAttempt(tx core.App, transmissionID string, a TransmissionAttempt) error {
	return exec(tx, "record attempt", `INSERT INTO transmission_attempts
			(transmission, started_at, duration_ms, status_code, request_id, error_code)
		VALUES ({:transmission}, {:started}, {:duration}, {:status}, {:request}, {:code})`, dbx.Params{
		"transmission": transmissionID, "started": a.StartedAt, "duration": a.DurationMS,
		"status": a.StatusCode, "request": a.RequestID, "code": a.ErrorCode,
	})
}

// TransmissionLedger reads the attempts of a transmission, oldest first. There may be many: six deliveries of up to four
// sends each, and those asked for by hand.
func TransmissionLedger(app core.App, transmissionID string) ([]TransmissionAttempt, error) {
	return queryAll[TransmissionAttempt](app, "read attempts", `SELECT started_at, duration_ms, status_code, request_id, error_code FROM transmission_attempts
		WHERE transmission = {:id} ORDER BY started_at, rowid`,
		dbx.Params{"id": transmissionID})
}

// DueTransmissions counts what a claim could take now, and what has its turn after that.
func DueTransmissions(app core.App, now time.Time) (int, error) {
	return queryValue[int](app, "count due transmissions", `SELECT (SELECT COUNT(*) FROM transmissions WHERE `+waiting+`)
		+ (SELECT COUNT(*) FROM transmissions WHERE `+waitingFor+`'turn')
		+ (SELECT COUNT(*) FROM transmissions WHERE `+retrying+` AND next_retry_at <= {:now})`, dbx.Params{"now": Instant(now)})
}

// TransmissionBacklog counts what waits: pending, in processing, and failed with a retry to come. What waits until the EMR knows the patient is not
// among them.
func TransmissionBacklog(app core.App) (pending, processing, awaitingRetry int, err error) {
	err = app.DB().NewQuery(`SELECT (SELECT COUNT(*) FROM transmissions WHERE `+waiting+`)
			+ (SELECT COUNT(*) FROM transmissions WHERE `+waitingFor+`'turn'),
		(SELECT COUNT(*) FROM transmissions WHERE status = 'processing'),
		(SELECT COUNT(*) FROM transmissions WHERE `+retrying+`)`).Row(&pending, &processing, &awaitingRetry)
	return pending, processing, awaitingRetry, wrap(err, "count backlog")
}

// TransmissionsSince counts what was last attempted since a moment, by how it stands, and says when the last delivery was; zero for never. What only
// waits until the EMR knows the patient has not failed, nor what was entered in error before it left.
func TransmissionsSince(app core.App, since time.Time) (transmitted, failed int, last time.Time, err error) {
	var at string
	err = app.DB().NewQuery(`SELECT
		(SELECT COUNT(*) FROM transmissions WHERE status = 'transmitted' AND last_attempted_at >= {:since}),
		(SELECT COUNT(*) FROM transmissions WHERE status = 'failed' AND waits_for = '' AND error_code != '`+NeverSent+`' AND last_attempted_at >= {:since}),
		(SELECT COALESCE(MAX(last_attempted_at), '') FROM transmissions WHERE status = 'transmitted')`).
		Bind(dbx.Params{"since": Instant(since)}).Row(&transmitted, &failed, &at)
	return transmitted, failed, ParseInstant(at), wrap(err, "count deliveries")
}

// NextTransmissionRetry is when the first of the failed transmissions is to be sent again, or was to be; zero when there is none.
func NextTransmissionRetry(app core.App) (time.Time, error) {
	at, err := queryValue[string](app, "find the next retry", `SELECT COALESCE(MIN(next_retry_at), '') FROM transmissions WHERE `+retrying, nil)
	return ParseInstant(at), err
}

// OldestPendingTransmission is when the pending transmission that waits longest was queued; zero when none waits.
func OldestPendingTransmission(app core.App) (time.Time, error) {
	at, err := queryValue[string](app, "find the oldest pending transmission", `SELECT COALESCE(MIN(created_at), '') FROM transmissions WHERE `+waiting, nil)
	return ParseInstant(at), err
}

// OnItsWay is where an observation is on its way to the EMR.
type OnItsWay struct {
	Kind    string `db:"observation_type"`
	Patient string `db:"patient"`
	Status  string `db:"fhir_status"`
	Version int    `db:"fhir_version"`
	// Withdrawn readings were entered in error.
	Withdrawn bool `db:"withdrawn"`
	// Suspect ones may be somebody else's.
	Suspect bool `db:"suspect"`
	// Copied: the EMR has a copy, or may have one, that is to follow a change.
	Copied bool `db:"copied"`
}

// FindOnItsWay finds where an observation is on its way to the EMR.
func FindOnItsWay(tx core.App, observationID string) (o OnItsWay, err error) {
	err = tx.DB().NewQuery(`SELECT observation_type, patient, fhir_status, fhir_version, status = 'entered_in_error' AS withdrawn, status = 'suspect' AS suspect,
			EXISTS (SELECT 1 FROM transmissions t WHERE t.observation = observations.id AND t.form = '' AND t.corrections > 0
				AND (t.ambiguous OR t.emr_resource_id != '')) AS copied
		FROM observations WHERE id = {:id}`).Bind(dbx.Params{"id": observationID}).One(&o)
	return o, wrap(err, "find the observation")
}

// NoteTransformed stores that an observation has a FHIR form, of a version, and is to be sent.
func NoteTransformed(tx core.App, observationID string, version int, now time.Time) error {
	return update(tx, "note the transform", Observations, dbx.Params{
		"fhir_status": FHIRPending, "fhir_version": version, "transformed_at": Instant(now), "transform_error": "", "updated_at": Instant(now),
	}, dbx.HashExp{"id": observationID})
}

// NoteTransformError stores why an observation has no FHIR form.
func NoteTransformError(tx core.App, observationID, because string) error {
	return update(tx, "note the transform", Observations, dbx.Params{"transform_error": because}, dbx.HashExp{"id": observationID})
}

// FailedTransforms are observations that failed to become FHIR, oldest first, at most limit of them.
func FailedTransforms(ctx context.Context, app core.App, limit int) (ids []string, err error) {
	err = app.DB().NewQuery(`SELECT id FROM observations WHERE transform_error != '' AND fhir_status = ''
		ORDER BY created_at LIMIT +{:limit}`).Bind(dbx.Params{"limit": limit}).WithContext(ctx).Column(&ids)
	return ids, wrap(err, "find failed transforms")
}
