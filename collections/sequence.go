package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

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
