package ingest

import (
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// MatchPatient returns the patient of a gateway measurement: the holder of the device at that time, or the patient that the gateway names.
// If they differ it does not guess. reason is why there is no match. Source: docs/decisions/gateway.md, "Which patient does an event belong
// to".
func MatchPatient(app core.App, event gateway.Event) (patientID, reason string, err error) {
	found, err := collections.FindEventMatch(app, event.DeviceID, event.PatientID, event.EffectiveTime())
	if err != nil {
		return "", "", err
	}
	holder, patient := found.HolderThen, found.Named
	if found.HolderNow != "" && found.HolderNow != holder {
		if holder, err = holderOfDoubtful(app, event, found); err != nil {
			return "", "", err
		}
	}
	switch {
	case holder == "" && patient.ID == "":
		return "", ReasonUnknownPatient, nil
	case holder != "" && patient.ID != "" && patient.ID != holder:
		return "", ReasonPatientMismatch, nil
	case patient.ID == "":
		if patient, err = collections.FindPatientMatch(app, holder); err != nil {
			return "", "", err
		}
	}
	switch {
	case patient.ID == "":
		return "", ReasonUnknownPatient, nil
	case !patient.Active || patient.DeletedAt != "":
		return "", ReasonPatientInactive, nil
	}
	return patient.ID, "", nil
}

// holderOfDoubtful returns the holder at the event's time, or the present holder if the time cannot
// be trusted (no other holder, unproven clock, newer times). An event received before the present
// assignment keeps its holder. Source: docs/decisions/devices.md, "Doubtful time".
func holderOfDoubtful(app core.App, event gateway.Event, found collections.EventMatch) (holder string, err error) {
	at := event.EffectiveTime()
	f, err := collections.FindClockFacts(app, found.HolderNow, event.DeviceID, at)
	if err != nil || event.ReceivedAt.Before(f.Assigned) {
		return found.HolderThen, err
	}
	named := found.Named.ID
	switch {
	case found.HolderThen == "" && (named == "" || devices.IsTimeImpossible(f, at)):
		return found.HolderNow, nil
	case found.HolderThen != "" && (named == "" || named == found.HolderNow) && (devices.IsBehind(f, at) || !f.IsProven):
		return found.HolderNow, nil
	}
	return found.HolderThen, nil
}

// findPatient returns the patient of a submission after checking that the reading can be theirs.
func (rs *ReadingStore) findPatient(tx core.App, m *patientCache, s Submission) (readingPatient, error) {
	patient, err := m.patient(tx, s.PatientID)
	if err != nil {
		return readingPatient{}, err
	}
	switch h := patient.row; {
	case h.DeletedAt != "": // deleted patients are not found
		return readingPatient{}, fault.Missing()
	case !h.Active:
		return readingPatient{}, fault.Field("patient_id", "This patient is archived.")
	case !s.TimeInDoubt && patient.isBeforeBirth(s.PatientID, s.Reading.MeasuredAt.In(collections.Zone(h.TimeZone, rs.rules.PracticeZone))):
		return readingPatient{}, fault.Field("measured_at", "Measurement time is before the patient's date of birth.")
	}
	if s.TimeInDoubt { // its holder at a time that may be wrong proves nothing
		return readingPatient{cachedPatient: patient}, nil
	}
	assigned, err := checkDeviceHolder(tx, m, s.PatientID, s.Reading)
	return readingPatient{patient, assigned}, err
}

// readingPatient is the patient of one reading.
type readingPatient struct {
	*cachedPatient
	// deviceAssigned: the device was assigned to the patient at the time of measurement.
	deviceAssigned bool
}

// patientRow is the part of a patient that storing a reading needs.
type patientRow struct {
	Active          bool                     `db:"active"`
	DeletedAt       string                   `db:"deleted_at"`
	TimeZone        string                   `db:"time_zone"`
	EarlierZones    collections.EarlierZones `db:"earlier_zones"`
	BirthDate       string                   `db:"date_of_birth"` // sealed
	FirstName       string                   `db:"first_name"`    // sealed
	LastName        string                   `db:"last_name"`     // sealed
	MRN             string                   `db:"mrn"`
	PrimaryProvider string                   `db:"provider_email"` // "" for a provider who can no longer sign in
}

func loadPatientRow(tx core.App, patientID string) (h patientRow, err error) {
	// A subquery: SQLite takes five times as long for an outer join.
	err = tx.DB().NewQuery(`SELECT p.active, p.deleted_at, p.time_zone, COALESCE(p.earlier_zones, '') AS earlier_zones, p.date_of_birth, p.first_name, p.last_name, p.mrn,
		COALESCE((SELECT u.email FROM users u WHERE u.id = p.primary_provider AND u.is_active = TRUE), '') AS provider_email
		FROM patients p WHERE p.id = {:id}`).
		Bind(dbx.Params{"id": patientID}).One(&h)
	if err != nil {
		err = fmt.Errorf("find patient of reading: %w", err)
	}
	return h, fault.OrMissing(err)
}

// isBeforeBirth reports whether the time, in the patient's zone, is before the date of birth. An unreadable date of birth rejects nothing.
// Source: docs/decisions/conventions.md, "Future and past measurement times".
func (p *cachedPatient) isBeforeBirth(patientID string, at time.Time) bool {
	day := at.Format(time.DateOnly)
	if p.earliestValidDay != "" && day >= p.earliestValidDay {
		return false
	}
	born, err := collections.OpenValue(p.row.BirthDate, collections.Patients, collections.PatientDateOfBirth, patientID)
	if err == nil && day < born {
		return true
	}
	p.earliestValidDay = day
	return false
}

// checkDeviceHolder reports whether the device was assigned to the patient at the time of measurement, and rejects a reading from a device that another patient had then. Source: docs/decisions/observations.md, "Patient and device checks".
func checkDeviceHolder(tx core.App, m *patientCache, patientID string, r vitals.Reading) (assigned bool, err error) {
	if r.DeviceID == "" {
		return false, nil
	}
	held, err := m.deviceHolder(tx, r)
	if err != nil {
		return false, err
	}
	if held != "" && held != patientID {
		return false, fault.State("device_patient_mismatch", "The device was assigned to another patient at that time.")
	}
	return held == patientID, nil
}

// label returns the patient's name and medical record number; the number alone if the name cannot be decrypted, because the alert matters
// more.
func (r patientRow) label(patientID string) string {
	first, err := collections.OpenValue(r.FirstName, collections.Patients, collections.PatientFirstName, patientID)
	last, again := collections.OpenValue(r.LastName, collections.Patients, collections.PatientLastName, patientID)
	if err != nil || again != nil {
		first, last = "", collections.UnreadableText
	}
	return strings.TrimSpace(first+" "+last) + " (" + r.MRN + ")"
}
