package collections

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
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

// ReadingKey says which reading an observation is: no two of a patient and kind that were measured within the same second have the same Key, unless
// it is "".
type ReadingKey struct {
	PatientID, Kind string
	MeasuredAt      time.Time
	Key             string
}

// HasReadingKey is true in SQL of the observation with a key, which is written as the statement binds it; of none where that is "". Earlier versions
// stored longer keys, which begin with what is one today. Word for word as in the index, without which SQLite would look at the rows.
func HasReadingKey(key string) string {
	return key + ` != '' AND CASE WHEN reading_key != '' THEN reading_key END BETWEEN ` + key + ` AND ` + key + ` || '~'`
}

// FindObservationByReading finds the observation that a reading is stored as.
func FindObservationByReading(app core.App, k ReadingKey) (*core.Record, error) {
	second := k.MeasuredAt.Truncate(time.Second)
	return findObservation(app, k.Key, `patient = {:patient} AND observation_type = {:kind} AND measured_at BETWEEN {:from} AND {:to}
		AND `+HasReadingKey("{:key}"), dbx.Params{
		"patient": k.PatientID, "kind": k.Kind, "from": Instant(second), "to": Instant(second.Add(time.Second - time.Microsecond)), "key": k.Key,
	})
}

// FindObservationByGatewayKey finds the observation that came from the gateway under a key.
func FindObservationByGatewayKey(app core.App, key string) (*core.Record, error) {
	return findObservation(app, key, "gateway_key = {:key} AND gateway_key != ''", dbx.Params{"key": key}) // the index leaves out who has none
}

// findObservation finds the observation for which a condition holds, if there is a key to look for.
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
	all, kinds := f.conditions(), ReadingKinds(app)
	if f.PatientID == "" || f.Kind != "" || len(kinds) == 0 {
		return all.PageOfPatientsAmong(app, Observations, order, offset, limit, matching)
	}
	hidden, err := all.countDeleted(app, Observations)
	if err != nil {
		return nil, 0, err
	}
	page, err := Conditions{merged{kinds, Every(all.And(notDeleted)), strings.Split(order, ", "), offset, limit}}.rows(app, Observations, order, 0, limit)
	return page, matching - hidden, err
}

// count is how many observations match, deleted patients' too. The totals of the days hold the answer for everything and for a
// kind, and for whole days of the practice; else the rows are counted.
func (f ObservationFilter) count(app core.App) (n int, err error) {
	first, last, whole := f.days()
	if f.PatientID != "" && f.Kind == "" {
		return f.conditions().And(anyKind(app)).Count(app, Observations)
	}
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
		FROM observations WHERE patient = {:patient} AND `+anyKind(app)+` AND measured_at >= {:from} AND status = 'final' ORDER BY measured_at`).
		Bind(dbx.Params{"patient": patientID, "from": Instant(since)}).WithContext(ctx), each)
}

// EachReadingBack goes through those of a kind, the newest first: time, device, and the named columns.
func EachReadingBack(app core.App, patientID, kind string, since time.Time, columns string, each func(*dbx.Rows) error) error {
	return eachRow("read latest readings", app.DB().NewQuery(`SELECT measured_at, device_id, `+columns+` FROM observations
		WHERE patient = {:patient} AND observation_type = {:kind} AND measured_at >= {:from} AND status = 'final' ORDER BY measured_at DESC, id DESC`).
		Bind(dbx.Params{"patient": patientID, "kind": kind, "from": Instant(since)}), each)
}

// EachCharted goes through all readings of a patient from a time until before another in order of measurement, also those that nobody believes and
// those that were taken back: id, kind, time, status, review state, and the named columns.
func EachCharted(app core.App, patientID string, from, to time.Time, columns string, each func(*dbx.Rows) error) error {
	return eachRow("read a patient's chart", app.DB().NewQuery(`SELECT id, observation_type, measured_at, status, review_state, `+columns+` FROM observations
		WHERE patient = {:patient} AND `+anyKind(app)+` AND measured_at >= {:from} AND measured_at < {:to} ORDER BY measured_at, created_at, id`).
		Bind(dbx.Params{"patient": patientID, "from": Instant(from), "to": Instant(to)}), each)
}

// ObservationsByID are the observations with some ids, in no order.
func ObservationsByID(app core.App, ids []string) (found []*core.Record, err error) {
	err = app.RecordQuery(Observations).AndWhere(among(ids)).All(&found)
	return found, wrap(err, "fetch observations")
}

// believed is what of a patient's readings is believed: not withdrawn, and not in doubt.
const believed = "status = 'final' AND review_state != 'suspect'"

// typed are the readings that only the patient vouches for, those from before origins were kept among them.
const typed = "(origin = 'patient' OR origin = '' AND source = 'patient_portal')"

// ObservationsAfter are a patient's readings of some kinds that are believed, measured after a time, in order of measurement.
func ObservationsAfter[Kind ~string](app core.App, patientID string, kinds []Kind, after time.Time) (found []*core.Record, err error) {
	where := Conditions{
		dbx.HashExp{"patient": patientID}, AnyOf("observation_type", kinds), dbx.NewExp("measured_at > {:after}", dbx.Params{"after": Instant(after)}),
	}.And(believed)
	err = app.RecordQuery(Observations).AndWhere(Every(where)).OrderBy("measured_at", "created_at", "id").All(&found)
	return found, wrap(err, "read what was measured after")
}

// MeasuredAfter reports whether a patient has a believed reading of some kinds, with a value in one of the columns, measured after a
// time; one that only the patient vouches for counts if typedToo.
func MeasuredAfter[Kind ~string](app core.App, patientID string, kinds []Kind, columns []string, after time.Time, typedToo bool) (bool, error) {
	measured := Conditions{}
	for _, column := range columns {
		measured = measured.And(column + " IS NOT NULL")
	}
	where := Conditions{
		dbx.HashExp{"patient": patientID},
		AnyOf("observation_type", kinds), dbx.NewExp("measured_at > {:after}", dbx.Params{"after": Instant(after)}),
		dbx.Or(measured...),
	}.And(believed)
	if !typedToo {
		where = where.And("NOT " + typed)
	}
	id := ""
	err := app.DB().Select("id").From(Observations).Where(Every(where)).Limit(1).Row(&id)
	return id != "", wrap(unlessMissing(err), "look for what was measured after")
}

// StoredAfter reports whether a patient has a believed reading that was stored after a time.
func StoredAfter(app core.App, patientID string, after time.Time) (bool, error) {
	return queryValue[bool](app, "look for what was stored after", `SELECT EXISTS (SELECT 1 FROM observations
		WHERE patient = {:patient} AND created_at > {:after} AND `+believed+`)`, dbx.Params{"patient": patientID, "after": Instant(after)})
}

// FlaggedTimes are when a patient's believed readings with a flag were measured, from one time to another, both included, in order.
func FlaggedTimes[Kind ~string](app core.App, patientID string, kinds []Kind, column string, from, to time.Time) (times []time.Time, err error) {
	var stored []string
	err = app.DB().Select("measured_at").From(Observations).Where(Every(Conditions{
		dbx.HashExp{"patient": patientID, column: "yes"}, AnyOf("observation_type", kinds),
	}.Between("measured_at", from, to).And(believed))).OrderBy("measured_at").Column(&stored)
	for _, at := range stored {
		times = append(times, ParseInstant(at))
	}
	return times, wrap(err, "read flagged readings")
}

// LastRecurring is the time of measurement of the last alert of a type about a patient that was not withdrawn; zero for none.
func LastRecurring(app core.App, patientID, alertType string) (time.Time, error) {
	at, err := queryValue[string](app, "find last alert", `SELECT COALESCE(MAX(measured_at), '') FROM alerts a
		WHERE patient = {:patient} AND type = {:type} AND `+holds, dbx.Params{"patient": patientID, "type": alertType})
	return ParseInstant(at), err
}

// holds is what is left of alerts whose readings were not withdrawn.
const holds = `resolution_reason != 'withdrawn'
	AND NOT EXISTS (SELECT 1 FROM observations WHERE id = a.observation AND status = 'entered_in_error')`

// Review says whether a stored reading is believed, and what depends on that.
type Review struct {
	Status, State, Reason, ConfirmedBy string
	ConfirmedAt                        time.Time
	FHIRStatus                         string
	FHIRVersion                        int
	TransformedAt                      time.Time
}

// SetReview stores what is thought of a reading.
func SetReview(tx core.App, id string, r Review, now time.Time) error {
	return update(tx, "store the review", Observations, dbx.Params{
		"status": r.Status, "review_state": r.State, "suspect_reason": r.Reason, "confirmed_by": r.ConfirmedBy, "confirmed_at": Instant(r.ConfirmedAt),
		"fhir_status": r.FHIRStatus, "fhir_version": r.FHIRVersion, "transformed_at": Instant(r.TransformedAt), "updated_at": Instant(now),
	}, dbx.HashExp{"id": id})
}

// AskedInRun reports whether an alert of the type was raised for another suspect reading of the same run: those of the patient and kind
// without one that holds measured in between.
func AskedInRun(app core.App, id, alertType string) (bool, error) {
	return queryValue[bool](app, "look for the question about a run", `SELECT EXISTS (
		SELECT 1 FROM observations o JOIN observations other ON other.patient = o.patient AND other.observation_type = o.observation_type
			AND other.status = 'suspect' AND other.id != o.id
		JOIN alerts a ON a.observation = other.id AND a.observation != '' AND a.type = {:type}
		WHERE o.id = {:id} AND NOT EXISTS (SELECT 1 FROM observations held WHERE held.patient = o.patient AND held.observation_type = o.observation_type
			AND held.status = 'final' AND held.measured_at BETWEEN min(o.measured_at, other.measured_at) AND max(o.measured_at, other.measured_at)))`,
		dbx.Params{"id": id, "type": alertType})
}

// SuspectFollows reports whether what was measured next of an observation's patient and kind is suspect.
func SuspectFollows(app core.App, patientID, kind, id string, at time.Time) (bool, error) {
	status, err := queryValue[string](app, "look for what was measured next", `SELECT status FROM observations
		WHERE patient = {:patient} AND observation_type = {:kind} AND measured_at >= {:at} AND id != {:id} AND status IN ('final', 'suspect')
		ORDER BY measured_at LIMIT 1`, dbx.Params{"patient": patientID, "kind": kind, "id": id, "at": Instant(at)})
	return status == "suspect", unlessMissing(err)
}

// UnaskedAround lists the suspect readings next to one that is decided, the oldest first: those of its patient and kind without one that holds
// measured in between, about which no alert of the type was raised. Those that are suspect for another reason are none of them.
func UnaskedAround(app core.App, id, alertType, otherReason string) ([]string, error) {
	return queryColumn[string](app, "list the suspect readings about which nobody is asked", `SELECT other.id
		FROM observations o JOIN observations other ON other.patient = o.patient AND other.observation_type = o.observation_type
			AND other.status = 'suspect' AND other.suspect_reason != {:reason} AND other.id != o.id
		WHERE o.id = {:id} AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.observation = other.id AND a.observation != '' AND a.type = {:type})
			AND NOT EXISTS (SELECT 1 FROM observations held WHERE held.patient = o.patient AND held.observation_type = o.observation_type
				AND held.status = 'final' AND held.id != o.id
				AND held.measured_at BETWEEN min(o.measured_at, other.measured_at) AND max(o.measured_at, other.measured_at))
		ORDER BY other.measured_at, other.id`,
		dbx.Params{"id": id, "type": alertType, "reason": otherReason})
}

// EndAlertsOfObservation gives the alerts of a type about a reading that are not over a status that ends them.
func EndAlertsOfObservation(tx core.App, observationID, alertType, status, by string, now time.Time) ([]EndedAlert, error) {
	return endAlerts(tx, `observation = {:observation} AND observation != '' AND type = {:type} AND status IN ('active', 'acknowledged')`,
		dbx.Params{"observation": observationID, "type": alertType}, status, by, now)
}
