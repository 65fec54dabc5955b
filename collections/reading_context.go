package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// EachSummaryReading calls each for a patient's trusted readings in a half-open span, of a kind unless "", by time of measurement: kind, time,
// source, origin, and the named columns.
func EachSummaryReading(app core.App, patientID, kind string, from, to time.Time, columns string, each func(*dbx.Rows) error) error {
	return eachRow("summarize readings", app.DB().NewQuery(`SELECT observation_type, measured_at, source, origin, `+columns+` FROM observations
		WHERE patient = {:patient} AND `+anyKind(app)+` AND measured_at >= {:from} AND measured_at < {:to} AND {:kind} IN ('', observation_type)
			AND status = 'final' AND review_state != 'suspect' ORDER BY measured_at, created_at, id`).
		Bind(dbx.Params{"patient": patientID, "kind": kind, "from": FormatInstant(from), "to": FormatInstant(to)}), each)
}

// PatientZone is a patient with the name of the time zone; "" is the practice's.
type PatientZone struct {
	PatientID string `db:"id"`
	TimeZone  string `db:"time_zone"`
}

// ReadingContext is the data that the FHIR form of a reading needs besides the reading: patient and device.
type ReadingContext struct {
	TimeZone     string `db:"time_zone"`   // "" for the practice's
	ExternalID   string `db:"external_id"` // the EMR's id of the patient
	Manufacturer string `db:"manufacturer"`
	Model        string `db:"model"`
	SerialNumber string `db:"serial_number"`
	UDI          string `db:"udi"`
}

// ReadingContextOf reads the context with one statement; deviceID may be "".
func ReadingContextOf(app core.App, patientID, deviceID string) (o ReadingContext, err error) {
	err = app.DB().NewQuery(`SELECT p.time_zone, p.external_id, COALESCE(d.manufacturer, '') AS manufacturer, ` + modelOfDevice + ` AS model,
			COALESCE(d.serial_number, '') AS serial_number, COALESCE(d.udi, '') AS udi
		FROM patients p LEFT JOIN devices d ON d.device_id = {:device} AND d.device_id != '' WHERE p.id = {:patient}`).
		Bind(dbx.Params{"patient": patientID, "device": deviceID}).One(&o)
	return o, wrap(IgnoreNotFound(err), "read the context of a reading")
}

// LinkedPatientsWithReadings returns the patients that the EMR has and that have a reading of a kind since a time.
func LinkedPatientsWithReadings(app core.App, kind string, since time.Time) ([]PatientZone, error) {
	return queryAll[PatientZone](app, "find patients with readings", `SELECT id, time_zone FROM patients
		WHERE external_id != '' AND deleted_at = '' AND EXISTS (SELECT 1 FROM observations o
			WHERE o.patient = patients.id AND o.observation_type = {:kind} AND o.measured_at >= {:since})
		ORDER BY id`, dbx.Params{"kind": kind, "since": FormatInstant(since)})
}

// SentMean returns the delivery of a mean; ok is false if there is none.
func SentMean(app core.App, id string) (c LeasedTransmission, status string, ok bool, err error) {
	return sentForm(app, id, FormMeanPressure)
}

// sentForm returns the delivery of a form that belongs to no single reading.
func sentForm(app core.App, id, form string) (c LeasedTransmission, status string, ok bool, err error) {
	var row struct {
		LeasedTransmission
		Status string `db:"status"`
	}
	err = app.DB().NewQuery(`SELECT ` + leasedColumns + `, status FROM transmissions WHERE observation = {:id} AND form = {:form}`).
		Bind(dbx.Params{"id": id, "form": form}).One(&row)
	if IsNotFound(err) {
		return c, "", false, nil
	}
	return row.LeasedTransmission, row.Status, err == nil, wrap(err, "find a mean")
}
