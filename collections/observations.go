package collections

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Values of an observation's status and FHIR status.
const (
	StatusFinal          = "final"
	StatusEnteredInError = "entered_in_error"
	StatusSuspect        = "suspect" // possibly another person's; the API shows it as final with a review state

	FHIRPending     = "pending"
	FHIRProcessing  = "processing"
	FHIRTransmitted = "transmitted"
	FHIRFailed      = "failed"
)

// Columns of an observation that are used by name.
const (
	ObservationGatewayKey    = "gateway_key"
	ObservationMeasuredAt    = "measured_at"
	ObservationReadingKey    = "reading_key"
	ObservationSource        = "source"
	ObservationOrigin        = "origin"
	ObservationFHIRVersion   = "fhir_version"
	ObservationTransformedAt = "transformed_at"
	ObservationReviewState   = "review_state"
	ObservationConfirmedBy   = "confirmed_by"

	ObservationEvaluatedBounds = "evaluated_bounds"
	ObservationConfirmedAt     = "confirmed_at"
)

// FindObservation finds one observation by id.
func FindObservation(app core.App, id string) (*core.Record, error) {
	record, err := app.FindRecordById(Observations, id)
	return record, wrap(err, "find observation")
}

// ReadingKey identifies a reading: no two observations of a patient and kind measured within the same second have the same Key, unless it is
// "".
type ReadingKey struct {
	PatientID, Kind string
	MeasuredAt      time.Time
	Key             string
}

// ReadingKeyCondition is the observation with a key in SQL; key is a parameter of the statement. "" matches none. Earlier versions stored
// longer keys that start with the current one. It repeats the index expression exactly, because SQLite would scan otherwise.
func ReadingKeyCondition(key string) string {
	return key + ` != '' AND CASE WHEN reading_key != '' THEN reading_key END BETWEEN ` + key + ` AND ` + key + ` || '~'`
}

// FindObservationByReading finds the observation of a reading.
func FindObservationByReading(app core.App, k ReadingKey) (*core.Record, error) {
	second := k.MeasuredAt.Truncate(time.Second)
	return findObservation(app, k.Key, `patient = {:patient} AND observation_type = {:kind} AND measured_at BETWEEN {:from} AND {:to}
		AND `+ReadingKeyCondition("{:key}"), dbx.Params{
		"patient": k.PatientID, "kind": k.Kind, "from": FormatInstant(second), "to": FormatInstant(second.Add(time.Second - time.Microsecond)), "key": k.Key,
	})
}

// FindObservationByGatewayKey finds the observation with a gateway key.
func FindObservationByGatewayKey(app core.App, key string) (*core.Record, error) {
	return findObservation(app, key, "gateway_key = {:key} AND gateway_key != ''", dbx.Params{"key": key}) // the condition of the partial index
}

// findObservation finds the observation that matches a condition, unless key is "".
func findObservation(app core.App, key, where string, params dbx.Params) (*core.Record, error) {
	record, err := &core.Record{}, sql.ErrNoRows
	if key != "" {
		err = app.RecordQuery(Observations).AndWhere(dbx.NewExp(where, params)).Limit(1).One(record)
	}
	if err != nil {
		return nil, wrap(err, "find observation by key")
	}
	return record, nil
}

// SetGatewayKey adds the gateway's key to a reading that first arrived by another channel, so a later event with the key is its duplicate or
// contradicts it. Source: docs/decisions/gateway.md, "Deduplication window versus retries".
func SetGatewayKey(tx core.App, id, key string) error {
	return update(tx, "set gateway key", Observations, dbx.Params{"gateway_key": key}, dbx.HashExp{"id": id})
}

// SetEnteredInError marks a reading as entered in error; version is the new version of its FHIR form, 0 for none.
func SetEnteredInError(tx core.App, id, by string, reason phi.Text, version int, now time.Time) error {
	sealed, err := Seal(reason.Reveal(), "observations.entered_in_error_reason", id)
	if err != nil {
		return fmt.Errorf("seal reason: %w", err)
	}
	at := FormatInstant(now)
	changes := dbx.Params{
		"status": StatusEnteredInError, "entered_in_error_at": at, "entered_in_error_by": by, "entered_in_error_reason": sealed, "updated_at": at,
	}
	if version > 0 {
		changes["fhir_version"], changes["transformed_at"] = version, at
	}
	return update(tx, "mark observation", Observations, changes, dbx.HashExp{"id": id})
}

// LatestObservation returns a patient's latest final reading of some kinds, with a value in column unless "". Readings that only the patient
// reported count if typedToo. nil for none.
func LatestObservation[Kind ~string](app core.App, patientID, column string, kinds []Kind, typedToo bool) (*core.Record, error) {
	where := Conditions{dbx.HashExp{"patient": patientID, "status": StatusFinal}, AnyOf("observation_type", kinds)}
	if column != "" {
		where = where.And(column + " IS NOT NULL")
	}
	if !typedToo {
		where = where.And("NOT " + typedByPatient)
	}
	var latest []*core.Record
	err := app.RecordQuery(Observations).AndWhere(AllOf(where)).OrderBy("measured_at DESC", "created_at DESC").Limit(1).All(&latest)
	if err != nil || len(latest) == 0 {
		return nil, wrap(err, "find latest reading")
	}
	return latest[0], nil
}

// CountStored counts the observations stored since a time, and of these those since the start of today, of the last hour and of the recent
// minutes. It returns when the last one was stored. It reads the recent part of one index.
func CountStored(app core.App, since, today, hourStart, recentStart time.Time) (storedToday, lastHour, recent int, last time.Time, err error) {
	var newest string
	err = app.DB().NewQuery(`SELECT
			COALESCE(SUM(created_at >= {:today}), 0), COALESCE(SUM(created_at > {:hour}), 0), COALESCE(SUM(created_at > {:recent}), 0),
			COALESCE((SELECT MAX(created_at) FROM observations), '')
		FROM observations WHERE created_at >= {:since}`).
		Bind(dbx.Params{"today": FormatInstant(today), "hour": FormatInstant(hourStart), "recent": FormatInstant(recentStart), "since": FormatInstant(since)}).
		Row(&storedToday, &lastHour, &recent, &newest)
	return storedToday, lastHour, recent, ParseInstant(newest), wrap(err, "count observations")
}

// EachReading calls each for a patient's final readings since a time, in order: id, kind, time, and the named columns.
func EachReading(ctx context.Context, app core.App, patientID string, since time.Time, columns string, each func(*dbx.Rows) error) error {
	return eachRow("read a patient's readings", app.DB().NewQuery(`SELECT id, observation_type, measured_at, `+columns+`
		FROM observations WHERE patient = {:patient} AND `+anyKind(app)+` AND measured_at >= {:from} AND status = 'final' ORDER BY measured_at`).
		Bind(dbx.Params{"patient": patientID, "from": FormatInstant(since)}).WithContext(ctx), each)
}

// EachReadingNewestFirst calls each for a patient's final readings of a kind since a time, newest first: time, device, and the named columns.
func EachReadingNewestFirst(app core.App, patientID, kind string, since time.Time, columns string, each func(*dbx.Rows) error) error {
	return eachRow("read latest readings", app.DB().NewQuery(`SELECT measured_at, device_id, `+columns+` FROM observations
		WHERE patient = {:patient} AND observation_type = {:kind} AND measured_at >= {:from} AND status = 'final' ORDER BY measured_at DESC, id DESC`).
		Bind(dbx.Params{"patient": patientID, "kind": kind, "from": FormatInstant(since)}), each)
}

// EachChartReading calls each for all of a patient's readings in a time range, by time of measurement, including suspect and retracted ones:
// id, kind, time, status, review state, and the named columns.
func EachChartReading(app core.App, patientID string, from, to time.Time, columns string, each func(*dbx.Rows) error) error {
	return eachRow("read a patient's chart", app.DB().NewQuery(`SELECT id, observation_type, measured_at, status, review_state, `+columns+` FROM observations
		WHERE patient = {:patient} AND `+anyKind(app)+` AND measured_at >= {:from} AND measured_at < {:to} ORDER BY measured_at, created_at, id`).
		Bind(dbx.Params{"patient": patientID, "from": FormatInstant(from), "to": FormatInstant(to)}), each)
}

// ObservationsByID returns observations in no order.
func ObservationsByID(app core.App, ids []string) (found []*core.Record, err error) {
	err = app.RecordQuery(Observations).AndWhere(idIn(ids)).All(&found)
	return found, wrap(err, "fetch observations")
}

// trusted selects readings that are neither retracted nor suspect.
const trusted = "status = 'final' AND review_state != 'suspect'"

// typedByPatient matches readings that only the patient reported, including those from before origins were stored.
const typedByPatient = "(origin = 'patient' OR origin = '' AND source = 'patient_portal')"

// ObservationsAfter returns a patient's trusted readings of some kinds measured after a time, by time of measurement.
func ObservationsAfter[Kind ~string](app core.App, patientID string, kinds []Kind, after time.Time) (found []*core.Record, err error) {
	where := Conditions{
		dbx.HashExp{"patient": patientID}, AnyOf("observation_type", kinds), dbx.NewExp("measured_at > {:after}", dbx.Params{"after": FormatInstant(after)}),
	}.And(trusted)
	err = app.RecordQuery(Observations).AndWhere(AllOf(where)).OrderBy("measured_at", "created_at", "id").All(&found)
	return found, wrap(err, "read later observations")
}

// SuspectsStoredAfter returns a patient's readings of some kinds that are suspect for a reason and were stored after a time, in that order.
func SuspectsStoredAfter[Kind ~string](app core.App, patientID string, kinds []Kind, reason string, after time.Time) (found []*core.Record, err error) {
	where := Conditions{
		dbx.HashExp{"patient": patientID, "status": StatusSuspect, "suspect_reason": reason},
		AnyOf("observation_type", kinds),
		dbx.NewExp("created_at > {:after}", dbx.Params{"after": FormatInstant(after)}),
	}
	err = app.RecordQuery(Observations).AndWhere(AllOf(where)).OrderBy("created_at", "id").All(&found)
	return found, wrap(err, "read suspect observations")
}

// ObservationsBetween returns a patient's trusted readings of a kind measured in a time span, both ends included, by time of measurement.
func ObservationsBetween[Kind ~string](app core.App, patientID string, kind Kind, from, to time.Time) (found []*core.Record, err error) {
	where := Conditions{
		dbx.HashExp{"patient": patientID, "observation_type": string(kind)}, dbx.Between("measured_at", FormatInstant(from), FormatInstant(to)),
	}.And(trusted)
	err = app.RecordQuery(Observations).AndWhere(AllOf(where)).OrderBy("measured_at", "created_at", "id").All(&found)
	return found, wrap(err, "read surrounding observations")
}

// ReviewedBetween returns a patient's readings of a kind measured in a time span, both ends included, the suspect ones too, by time of measurement.
func ReviewedBetween[Kind ~string](app core.App, patientID string, kind Kind, from, to time.Time) (found []*core.Record, err error) {
	err = app.RecordQuery(Observations).AndWhere(dbx.And(
		dbx.HashExp{"patient": patientID, "observation_type": string(kind)}, dbx.Between("measured_at", FormatInstant(from), FormatInstant(to)),
		dbx.In("status", StatusFinal, StatusSuspect),
	)).OrderBy("measured_at", "created_at", "id").All(&found)
	return found, wrap(err, "read the reviews of observations")
}

// ValueSpan is the range of a patient's values between two times.
type ValueSpan struct {
	Low, High  float64
	IsReviewed bool // one is or was suspect
}

// SpanOfValues returns the range of the values in a column of the final and suspect readings of a kind, both bounds inclusive.
func SpanOfValues[Kind ~string](app core.App, patientID string, kind Kind, column string, from, to time.Time) (s ValueSpan, err error) {
	err = app.DB().NewQuery(`SELECT COALESCE(MIN(`+column+`), 0), COALESCE(MAX(`+column+`), 0),
			COALESCE(MAX(status = 'suspect' OR suspect_reason != ''), FALSE) FROM observations
		WHERE patient = {:patient} AND observation_type = {:kind} AND measured_at BETWEEN {:from} AND {:to} AND status IN ('final', 'suspect')`).
		Bind(dbx.Params{"patient": patientID, "kind": string(kind), "from": FormatInstant(from), "to": FormatInstant(to)}).Row(&s.Low, &s.High, &s.IsReviewed)
	return s, wrap(err, "read the range of values")
}

// HasReadingSince reports whether a reading of a patient was stored since a time; deviceID narrows to one device unless "".
func HasReadingSince(app core.App, patientID, deviceID string, since time.Time) (bool, error) {
	return queryValue[bool](app, "look for readings", `SELECT EXISTS (SELECT 1 FROM observations WHERE patient = {:patient}
		AND {:device} IN ('', device_id) AND created_at >= {:since})`, dbx.Params{"patient": patientID, "device": deviceID, "since": FormatInstant(since)})
}

// HasReadingStoredAfter reports whether a patient has a trusted reading stored after a time.
func HasReadingStoredAfter(app core.App, patientID string, after time.Time) (bool, error) {
	return queryValue[bool](app, "look for readings stored later", `SELECT EXISTS (SELECT 1 FROM observations
		WHERE patient = {:patient} AND created_at > {:after} AND `+trusted+`)`, dbx.Params{"patient": patientID, "after": FormatInstant(after)})
}

// FlaggedTimes returns when a patient's trusted readings with a flag were measured, both bounds inclusive, in order.
func FlaggedTimes[Kind ~string](app core.App, patientID string, kinds []Kind, column string, from, to time.Time) (times []time.Time, err error) {
	var stored []string
	err = app.DB().Select("measured_at").From(Observations).Where(AllOf(Conditions{
		dbx.HashExp{"patient": patientID, column: "yes"}, AnyOf("observation_type", kinds),
	}.Between("measured_at", from, to).And(trusted))).OrderBy("measured_at").Column(&stored)
	for _, at := range stored {
		times = append(times, ParseInstant(at))
	}
	return times, wrap(err, "read flagged readings")
}

// ObservationReview is the review state of a stored reading, and the columns that depend on it.
type ObservationReview struct {
	Status, State, Reason, ConfirmedBy string
	ConfirmedAt                        time.Time
	FHIRStatus                         string
	FHIRVersion                        int
	TransformedAt                      time.Time
}

// SetReview stores the review state of a reading.
func SetReview(tx core.App, id string, r ObservationReview, now time.Time) error {
	return update(tx, "store the review", Observations, dbx.Params{
		"status": r.Status, "review_state": r.State, "suspect_reason": r.Reason, "confirmed_by": r.ConfirmedBy, "confirmed_at": FormatInstant(r.ConfirmedAt),
		"fhir_status": r.FHIRStatus, "fhir_version": r.FHIRVersion, "transformed_at": FormatInstant(r.TransformedAt), "updated_at": FormatInstant(now),
	}, dbx.HashExp{"id": id})
}

// SetMeasuredAt stores a corrected time of measurement.
func SetMeasuredAt(tx core.App, id string, at, now time.Time) error {
	return update(tx, "correct the time of a reading", Observations, dbx.Params{ObservationMeasuredAt: FormatInstant(at), ColumnUpdatedAt: FormatInstant(now)},
		dbx.HashExp{"id": id})
}

// SetEvaluatedBounds stores, sealed, the bounds by which an observation was evaluated.
func SetEvaluatedBounds(tx core.App, id, bounds string) error {
	sealed, err := Seal(bounds, Observations+"."+ObservationEvaluatedBounds, id)
	if err != nil {
		return err
	}
	return update(tx, "store evaluated bounds", Observations, dbx.Params{ObservationEvaluatedBounds: sealed}, dbx.HashExp{"id": id})
}

// IsNextSuspect reports whether the next measured reading of an observation's patient and kind is suspect.
func IsNextSuspect(app core.App, patientID, kind, id string, at time.Time) (bool, error) {
	status, err := queryValue[string](app, "find the next reading", `SELECT status FROM observations
		WHERE patient = {:patient} AND observation_type = {:kind} AND measured_at >= {:at} AND id != {:id} AND status IN ('final', 'suspect')
		ORDER BY measured_at LIMIT 1`, dbx.Params{"patient": patientID, "kind": kind, "id": id, "at": FormatInstant(at)})
	return status == "suspect", IgnoreNotFound(err)
}

// SuspectsWithoutAlert returns the suspect readings in the run around a decided one that have no alert of the type, oldest first. It excludes
// readings that are suspect for otherReason.
func SuspectsWithoutAlert(app core.App, id, alertType, otherReason string) ([]string, error) {
	return queryColumn[string](app, "list suspect readings without an alert", `SELECT other.id
		FROM observations o JOIN observations other ON other.patient = o.patient AND other.observation_type = o.observation_type
			AND other.status = 'suspect' AND other.suspect_reason != {:reason} AND other.id != o.id
		WHERE o.id = {:id} AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.observation = other.id AND a.observation != '' AND a.type = {:type})
			AND NOT EXISTS (SELECT 1 FROM observations held WHERE held.patient = o.patient AND held.observation_type = o.observation_type
				AND held.status = 'final' AND held.id != o.id
				AND held.measured_at BETWEEN min(o.measured_at, other.measured_at) AND max(o.measured_at, other.measured_at))
		ORDER BY other.measured_at, other.id`,
		dbx.Params{"id": id, "type": alertType, "reason": otherReason})
}
