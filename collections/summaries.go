package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// EachSummarised goes through a patient's readings that hold and are believed, of a kind unless "", from a time until before another, in order
// of measurement: kind, time, source, origin, and the named columns.
func EachSummarised(app core.App, patientID, kind string, from, to time.Time, columns string, each func(*dbx.Rows) error) error {
	return eachRow("summarise readings", app.DB().NewQuery(`SELECT observation_type, measured_at, source, origin, `+columns+` FROM observations
		WHERE patient = {:patient} AND measured_at >= {:from} AND measured_at < {:to} AND {:kind} IN ('', observation_type)
			AND status = 'final' AND review_state != 'suspect' ORDER BY measured_at, created_at, id`).
		Bind(dbx.Params{"patient": patientID, "kind": kind, "from": Instant(from), "to": Instant(to)}), each)
}

// PatientZone is a patient with the name of the time zone, "" for the practice's.
type PatientZone struct {
	PatientID string `db:"id"`
	TimeZone  string `db:"time_zone"`
}

// PatientsAtEMR are the patients whom the EMR knows and who have a reading of a kind since a time.
func PatientsAtEMR(app core.App, kind string, since time.Time) ([]PatientZone, error) {
	return queryAll[PatientZone](app, "find patients with readings", `SELECT id, time_zone FROM patients
		WHERE external_id != '' AND deleted_at = '' AND EXISTS (SELECT 1 FROM observations o
			WHERE o.patient = patients.id AND o.observation_type = {:kind} AND o.measured_at >= {:since})
		ORDER BY id`, dbx.Params{"kind": kind, "since": Instant(since)})
}

// SentMean is what is known of the delivery of a mean; ok is false when there is none.
func SentMean(app core.App, id string) (c ClaimedTransmission, status string, ok bool, err error) {
	var row struct {
		ClaimedTransmission
		Status string `db:"status"`
	}
	err = app.DB().NewQuery(`SELECT ` + claimed + `, status FROM transmissions WHERE observation = {:id} AND form = '` + FormMeanPressure + `'`).
		Bind(dbx.Params{"id": id}).One(&row)
	if Missing(err) {
		return c, "", false, nil
	}
	return row.ClaimedTransmission, row.Status, err == nil, wrap(err, "find a mean")
}
