package collections

import (
	"context"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// DueTransmissions counts what a claim could take now.
func DueTransmissions(app core.App, now time.Time) (int, error) {
	return queryValue[int](app, "count due transmissions", `SELECT (SELECT COUNT(*) FROM transmissions WHERE `+waiting+`)
		+ (SELECT COUNT(*) FROM transmissions WHERE `+retrying+` AND next_retry_at <= {:now})`, dbx.Params{"now": Instant(now)})
}

// TransmissionBacklog counts what waits: pending, in processing, and failed with a retry to come.
func TransmissionBacklog(app core.App) (pending, processing, awaitingRetry int, err error) {
	err = app.DB().NewQuery(`SELECT (SELECT COUNT(*) FROM transmissions WHERE `+waiting+`),
		(SELECT COUNT(*) FROM transmissions WHERE status = 'processing'),
		(SELECT COUNT(*) FROM transmissions WHERE `+retrying+`)`).Row(&pending, &processing, &awaitingRetry)
	return pending, processing, awaitingRetry, wrap(err, "count backlog")
}

// TransmissionsSince counts what was last attempted since a moment, by how it stands, and says when the last delivery was; zero for never.
func TransmissionsSince(app core.App, since time.Time) (transmitted, failed int, last time.Time, err error) {
	var at string
	err = app.DB().NewQuery(`SELECT
		(SELECT COUNT(*) FROM transmissions WHERE status = 'transmitted' AND last_attempted_at >= {:since}),
		(SELECT COUNT(*) FROM transmissions WHERE status = 'failed' AND last_attempted_at >= {:since}),
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
}

// FindOnItsWay finds where an observation is on its way to the EMR.
func FindOnItsWay(tx core.App, observationID string) (o OnItsWay, err error) {
	err = tx.DB().NewQuery(`SELECT observation_type, patient, fhir_status, fhir_version, status = 'entered_in_error' AS withdrawn
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
