package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ClockBounds are the moments before which a device cannot have measured anything of a patient's: when the patient was enrolled, and the
// day on which the device was made; zero where they are not known.
func ClockBounds(app core.App, patientID, deviceID string) (enrolled, made time.Time, err error) {
	var enrolledAt, madeOn string
	err = app.DB().NewQuery(`SELECT COALESCE((SELECT enrolled_at FROM triage_scores WHERE patient = {:patient}), ''),
			COALESCE((SELECT made_on FROM devices WHERE device_id = {:device}), '')`).
		Bind(dbx.Params{"patient": patientID, "device": deviceID}).Row(&enrolledAt, &madeOn)
	return ParseInstant(enrolledAt), ParseDay(madeOn, time.UTC), wrap(err, "find what a device's clock may say")
}

// NoteWrongClock notes that a reading came from a device whose clock is wrong; only the first until a sane time comes is kept.
func NoteWrongClock(tx core.App, deviceID, patientID, observationID string, now time.Time) error {
	return exec(tx, "note a wrong clock", `UPDATE devices SET clock_wrong_at = {:now}, clock_told_at = '', clock_patient = {:patient}, clock_observation = {:observation}
		WHERE device_id = {:device} AND clock_wrong_at = ''`,
		dbx.Params{"now": Instant(now), "patient": patientID, "observation": observationID, "device": deviceID})
}

// The columns of a device that say how its clock stands, and when it was made.
const (
	DeviceMadeOn       = "made_on"
	DeviceClockToldAt  = "clock_told_at"
	deviceClockWrongAt = "clock_wrong_at"
)

// ClockRight forgets that the clock was wrong.
func (d *Device) ClockRight() {
	for _, column := range []string{deviceClockWrongAt, DeviceClockToldAt, "clock_patient", "clock_observation"} {
		d.Set(column, "")
	}
}

func (d *Device) ClockWrongAt() time.Time  { return instantOf(d, deviceClockWrongAt) }
func (d *Device) ClockToldAt() time.Time   { return instantOf(d, DeviceClockToldAt) }
func (d *Device) ClockPatient() string     { return d.GetString("clock_patient") }
func (d *Device) ClockObservation() string { return d.GetString("clock_observation") }
