package collections

import (
	"context"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// The values of an observation's status and FHIR status.
const (
	StatusFinal          = "final"
	StatusEnteredInError = "entered_in_error"
	StatusSuspect        = "suspect" // perhaps not the patient's; outwardly final with a review state

	FHIRPending     = "pending"
	FHIRProcessing  = "processing"
	FHIRTransmitted = "transmitted"
	FHIRFailed      = "failed"
)

// The columns of an observation that are read or written by name.
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
	ObservationConfirmedAt   = "confirmed_at"
)

// FindObservation finds one observation by id.
func FindObservation(app core.App, id string) (*core.Record, error) {
	record, err := app.FindRecordById(Observations, id)
	return record, wrap(err, "find observation")
}

// FindObservationByKey finds the observation that a reading key or a gateway key names; either may be "". When they name
// two, the reading key decides.
func FindObservationByKey(app core.App, readingKey, gatewayKey string) (*core.Record, error) {
	record := &core.Record{}
	err := app.RecordQuery(Observations).AndWhere(keyed("reading_key", readingKey)).One(record)
	if Missing(err) {
		err = app.RecordQuery(Observations).AndWhere(keyed("gateway_key", gatewayKey)).One(record)
	}
	if err != nil {
		return nil, wrap(err, "find observation by key")
	}
	return record, nil
}

// keyed repeats the condition of the partial index, without which SQLite would not use it.
func keyed(column, key string) dbx.Expression {
	if key == "" {
		return dbx.NewExp("FALSE")
	}
	return dbx.NewExp(fmt.Sprintf("(%s = {:%s} AND %s != '')", column, column, column), dbx.Params{column: key})
}

// TakeGatewayKey gives the gateway's key to a reading that came another way first: what comes under the key from now on repeats this
// reading or contradicts it. Source: docs/decisions/gateway.md, "Deduplication window versus retries".
func TakeGatewayKey(tx core.App, id, key string) error {
	return update(tx, "take the gateway's key", Observations, dbx.Params{"gateway_key": key}, dbx.HashExp{"id": id})
}

// SetEnteredInError stores that a reading counts for nothing any more; version is that of its FHIR form from now on, 0 for none.
func SetEnteredInError(tx core.App, id, by string, reason phi.Text, version int, now time.Time) error {
	sealed, err := Seal(reason.Reveal(), "observations.entered_in_error_reason", id)
	if err != nil {
		return fmt.Errorf("seal reason: %w", err)
	}
	at := Instant(now)
	changes := dbx.Params{
		"status": StatusEnteredInError, "entered_in_error_at": at, "entered_in_error_by": by, "entered_in_error_reason": sealed, "updated_at": at,
	}
	if version > 0 {
		changes["fhir_version"], changes["transformed_at"] = version, at
	}
	return update(tx, "mark observation", Observations, changes, dbx.HashExp{"id": id})
}

// LatestObservation is a patient's latest reading that holds, of some kinds, with a value in a column unless ""; one that only the
// patient vouches for counts if typedToo. nil for none.
func LatestObservation[Kind ~string](app core.App, patientID, column string, kinds []Kind, typedToo bool) (*core.Record, error) {
	where := Conditions{dbx.HashExp{"patient": patientID, "status": StatusFinal}, AnyOf("observation_type", kinds)}
	if column != "" {
		where = where.And(column + " IS NOT NULL")
	}
	if !typedToo {
		where = where.And("NOT " + typed)
	}
	var latest []*core.Record
	err := app.RecordQuery(Observations).AndWhere(Every(where)).OrderBy("measured_at DESC", "created_at DESC").Limit(1).All(&latest)
	if err != nil || len(latest) == 0 {
		return nil, wrap(err, "find latest reading")
	}
	return latest[0], nil
}

// ObservationFilter narrows a list of observations; zero values do not.
type ObservationFilter struct {
	PatientID, Kind, FHIRStatus string
	// From and To bound the time of measurement, both inclusive.
	From, To time.Time
	// Zone is the practice's, whose days are counted as readings come in.
	Zone *time.Location
	// OldestFirst orders by time of measurement upwards instead of downwards.
	OldestFirst bool
	// CareTeamOf keeps the patients whose care team this user (record id) belongs to.
	CareTeamOf string
}

// undelivered is the condition of an index, word for word.
const undelivered = "fhir_status != '" + FHIRTransmitted + "'"

func (f ObservationFilter) conditions() Conditions {
	c := Conditions{}.Equal("patient", f.PatientID).Equal("observation_type", f.Kind).
		Equal("fhir_status", f.FHIRStatus).Between("measured_at", f.From, f.To).OnCareTeamOf(f.CareTeamOf)
	if f.PatientID == "" && f.FHIRStatus != "" && f.FHIRStatus != FHIRTransmitted {
		return c.And(undelivered) // says what the status says already, so that the index of these few is used
	}
	return c
}

// PageOfObservations returns a page of observations and how many there are in all.
func PageOfObservations(app core.App, f ObservationFilter, offset, limit int) ([]*core.Record, int, error) {
	matching, err := f.count(app)
	if err != nil {
		return nil, 0, err
	}
	order := "measured_at DESC, id DESC"
	if f.OldestFirst {
		order = "measured_at ASC, id ASC"
	}
	return f.conditions().PageOfPatientsAmong(app, Observations, order, offset, limit, matching)
}

// count is how many observations match, deleted patients' too. The totals of the days hold the answer for everything and for a
// kind, and for whole days of the practice; else the rows are counted.
func (f ObservationFilter) count(app core.App) (n int, err error) {
	first, last, whole := f.days()
	if !whole || f.PatientID != "" || f.CareTeamOf != "" || f.FHIRStatus != "" && f.FHIRStatus != FHIRTransmitted {
		return f.conditions().Count(app, Observations)
	}
	if n, err = TotalReadings(app, first, last, f.Kind); err != nil || f.FHIRStatus == "" {
		return n, err
	}
	f.FHIRStatus = ""
	others, err := f.conditions().And(undelivered).Count(app, Observations)
	return n - others, err
}

// days are the first and the last day of the practice that the filter lets through, if it lets through only whole ones.
func (f ObservationFilter) days() (first, last string, whole bool) {
	first, last = "", "~" // before and after every date
	if f.Zone == nil {
		return first, last, f.From.IsZero() && f.To.IsZero()
	}
	day := func(at time.Time) string { return at.In(f.Zone).Format(time.DateOnly) }
	if !f.From.IsZero() {
		if first = day(f.From); first == day(f.From.Add(-time.Microsecond)) {
			return "", "", false
		}
	}
	if !f.To.IsZero() {
		if last = day(f.To); last == day(f.To.Add(time.Microsecond)) {
			return "", "", false
		}
	}
	return first, last, true
}

// CountStored counts the observations stored since a time, and of them those since today began, in the last hour and lately, and
// tells when the last of all was stored. It reads the part of one index that is no older.
func CountStored(app core.App, since, begun, hour, lately time.Time) (today, lastHour, recent int, last time.Time, err error) {
	var newest string
	err = app.DB().NewQuery(`SELECT
			COALESCE(SUM(created_at >= {:today}), 0), COALESCE(SUM(created_at > {:hour}), 0), COALESCE(SUM(created_at > {:recent}), 0),
			COALESCE((SELECT MAX(created_at) FROM observations), '')
		FROM observations WHERE created_at >= {:since}`).
		Bind(dbx.Params{"today": Instant(begun), "hour": Instant(hour), "recent": Instant(lately), "since": Instant(since)}).
		Row(&today, &lastHour, &recent, &newest)
	return today, lastHour, recent, ParseInstant(newest), wrap(err, "count observations")
}

// EachReading goes through what a patient's readings that hold had since a time, in order: id, kind, time, and the named columns.
func EachReading(ctx context.Context, app core.App, patientID string, since time.Time, columns string, each func(*dbx.Rows) error) error {
	return eachRow("read a patient's readings", app.DB().NewQuery(`SELECT id, observation_type, measured_at, `+columns+`
		FROM observations WHERE patient = {:patient} AND measured_at >= {:from} AND status = 'final' ORDER BY measured_at`).
		Bind(dbx.Params{"patient": patientID, "from": Instant(since)}).WithContext(ctx), each)
}

// EachReadingBack goes through those of a kind, the newest first: time, device, and the named columns.
func EachReadingBack(app core.App, patientID, kind string, since time.Time, columns string, each func(*dbx.Rows) error) error {
	return eachRow("read latest readings", app.DB().NewQuery(`SELECT measured_at, device_id, `+columns+` FROM observations
		WHERE patient = {:patient} AND observation_type = {:kind} AND measured_at >= {:from} AND status = 'final' ORDER BY measured_at DESC, id DESC`).
		Bind(dbx.Params{"patient": patientID, "kind": kind, "from": Instant(since)}), each)
}
