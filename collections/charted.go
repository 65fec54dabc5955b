package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// EachCharted goes through all readings of a patient from a time until before another in order of measurement, also those that nobody believes and
// those that were taken back: id, kind, time, status, review state, and the named columns.
func EachCharted(app core.App, patientID string, from, to time.Time, columns string, each func(*dbx.Rows) error) error {
	return eachRow("read a patient's chart", app.DB().NewQuery(`SELECT id, observation_type, measured_at, status, review_state, `+columns+` FROM observations
		WHERE patient = {:patient} AND measured_at >= {:from} AND measured_at < {:to} ORDER BY measured_at, created_at, id`).
		Bind(dbx.Params{"patient": patientID, "from": Instant(from), "to": Instant(to)}), each)
}
