package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// NewerReadings selects a patient's trusted readings of some kinds measured after a time, with a value in one of the columns.
type NewerReadings[Kind ~string] struct {
	PatientID string
	Kinds     []Kind
	Columns   []string
	After     time.Time
	// TypedToo: readings that only the patient reported count. OfDevice narrows to one device unless nil, and to others measured after OrAfter.
	TypedToo bool
	OfDevice *string
	OrAfter  time.Time
}

// Exist reports whether there is such a reading.
func (r NewerReadings[Kind]) Exist(app core.App) (bool, error) {
	measured := Conditions{}
	for _, column := range r.Columns {
		measured = measured.And(column + " IS NOT NULL")
	}
	where := Conditions{
		dbx.HashExp{"patient": r.PatientID},
		AnyOf("observation_type", r.Kinds), dbx.NewExp("measured_at > {:after}", dbx.Params{"after": FormatInstant(r.After)}),
		dbx.Or(measured...),
	}.And(trusted)
	if !r.TypedToo {
		where = where.And("NOT " + typedByPatient)
	}
	if r.OfDevice != nil { // its newest time spares the search among the readings of other devices
		where = append(where, dbx.NewExp(
			"(measured_at > {:orAfter} OR device_id = {:of} AND COALESCE((SELECT newest_measured_at FROM devices WHERE device_id = {:of}), '9') > {:after})",
			dbx.Params{"of": *r.OfDevice, "orAfter": FormatInstant(r.OrAfter)}))
	}
	id := ""
	err := app.DB().Select("id").From(Observations).Where(AllOf(where)).Limit(1).Row(&id)
	return id != "", wrap(IgnoreNotFound(err), "look for later readings")
}

// UnprovenReadings returns a patient's trusted readings of some kinds that were stored after a time, as they arrived, from devices with nothing
// that proves their clocks, in order of measurement.
func UnprovenReadings[Kind ~string](app core.App, patientID string, kinds []Kind, after time.Time) (found []*core.Record, err error) {
	where := Conditions{
		dbx.HashExp{"patient": patientID, "source": "gateway", "received_at": ""},
		AnyOf("observation_type", kinds),
		dbx.NewExp("created_at > {:after}", dbx.Params{"after": FormatInstant(after)}),
		dbx.NewExp("NOT EXISTS (SELECT 1 FROM devices d WHERE d.device_id = observations.device_id AND d.clock_proven_at != '')"),
	}.And(trusted)
	err = app.RecordQuery(Observations).AndWhere(AllOf(where)).OrderBy("measured_at", "created_at", "id").All(&found)
	return found, wrap(err, "read observations of unproven clocks")
}

// HasDoubtfulSince reports whether a patient has a reading stored after a time that is suspect for a reason, or of a device with nothing that proves its
// clock.
func HasDoubtfulSince(app core.App, patientID, reason string, after time.Time) (bool, error) {
	return queryValue[bool](app, "look for readings with a time in doubt", `SELECT EXISTS (SELECT 1 FROM observations
		WHERE patient = {:patient} AND created_at > {:after} AND (status = 'suspect' AND suspect_reason = {:reason}
			OR source = 'gateway' AND received_at = '' AND `+trusted+` AND measured_at < {:after}
				AND NOT EXISTS (SELECT 1 FROM devices d WHERE d.device_id = observations.device_id AND d.clock_proven_at != '')))`,
		dbx.Params{"patient": patientID, "reason": reason, "after": FormatInstant(after)})
}
