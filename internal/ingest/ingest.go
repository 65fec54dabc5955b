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
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Evaluator stores readings with their consequences, by the practice's rules.
type Evaluator struct {
	rules Rules
}

// NewEvaluator returns an engine with the given rules.
func NewEvaluator(rules Rules) *Evaluator { return &Evaluator{rules: rules} }

// patientRow is the patient a reading is for, as far as storing it is concerned.
type patientRow struct {
	Active          bool   `db:"active"`
	DeletedAt       string `db:"deleted_at"`
	TimeZone        string `db:"time_zone"`
	BirthDate       string `db:"date_of_birth"` // sealed
	FirstName       string `db:"first_name"`    // sealed
	LastName        string `db:"last_name"`     // sealed
	MRN             string `db:"mrn"`
	PrimaryProvider string `db:"provider_email"` // "" for one who can no longer sign in, and so would not act
}

// readingPatient is the patient of one reading.
type readingPatient struct {
	*cachedPatient
	// deviceAssigned: the device of the reading was assigned to the patient when it was taken.
	deviceAssigned bool
}

// Ingest stores one reading with everything that follows from it, inside the caller's transaction. A fault is returned
// before anything is written; after any other error the transaction must be rolled back.
func (e *Evaluator) Ingest(tx core.App, s Submission, now time.Time) (Outcome, error) {
	b, err := newWriteBatch(tx)
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := e.storeReading(tx, b, nil, s, now)
	if err != nil {
		return outcome, err
	}
	return outcome, b.store(tx)
}

func (e *Evaluator) storeReading(tx core.App, b *writeBatch, m *patientCache, s Submission, now time.Time) (Outcome, error) {
	if s.Addition {
		return e.mergePartial(tx, b, m, s, now)
	}
	patient, err := e.findPatient(tx, m, s)
	if err != nil {
		return Outcome{}, err
	}
	o := e.newObservation(s, now)
	stored, err := insert(tx, o)
	if err != nil {
		return Outcome{}, err
	}
	if !stored {
		outcome, keyless, err := findDuplicate(tx, o)
		switch {
		case err == nil && keyless:
			err = collections.TakeGatewayKey(tx, outcome.Observation.ID, o.gatewayKey)
		case err == nil && s.Partial && outcome.Conflict: // which it is not when it says more and nothing else
			s.Reading, s.key = s.Reading.Beyond(outcome.Observation.Reading), ""
			return e.mergePartial(tx, b, m, s, now)
		case err == nil && s.Partial && outcome.Duplicate:
			_, err = collections.FindObservationByGatewayKey(tx, o.gatewayKey)
			if outcome.KeyAlias = collections.Missing(err); outcome.KeyAlias {
				err = nil
			}
		}
		return outcome, err
	}
	if s.skipsEvaluation() {
		return e.storeWrongClock(tx, b, o, s, now)
	}
	check, err := recordSighting(tx, o, s.Device, now)
	if err != nil {
		return Outcome{}, err
	}
	if check && s.DiscardedBefore != nil {
		if why, dismissed, err := s.DiscardedBefore(tx); err != nil || dismissed {
			return e.storeDiscarded(tx, b, o, s, why, err, now)
		}
	}
	outcome, err := e.evaluateAndApply(tx, b, o, patient, s, now)
	outcome.CheckDevice = check
	return outcome, err
}

// recordSighting notes in the register what a reading says of its device. What a portal user typed says nothing: the observation keeps the
// id as it was typed, but the practice's register is no list of what patients type, nor a sign of life of what they name.
// Source: docs/decisions/observations.md, "Patient and device checks".
func recordSighting(tx core.App, o Observation, report devices.Envelope, now time.Time) (check bool, err error) {
	if o.Source == vitals.SourcePortal {
		return false, nil
	}
	return devices.RecordSighting(tx, o.Reading, report, now)
}

// evaluateAndApply decides and writes what follows from a stored observation, as part of the transaction's batch.
func (e *Evaluator) evaluateAndApply(
	tx core.App, b *writeBatch, o Observation, patient readingPatient, s Submission, now time.Time,
) (Outcome, error) {
	snapshot, err := patient.snapshotFor(tx, o.PatientID, o.Reading, now)
	if err != nil {
		return Outcome{}, err
	}
	if o.Reading.Kind.Definition().Doubted != nil {
		if outcome, decided, err := e.resolveSuspicion(tx, b, o, snapshot, patient, s.By, now); decided || err != nil {
			return outcome, err
		}
	}
	input := AssessInput{
		Snapshot: snapshot, PrimaryProvider: patient.row.PrimaryProvider, PatientZone: collections.Zone(patient.row.TimeZone, e.rules.PracticeZone),
		DeviceAssigned: patient.deviceAssigned,
	}
	if input.MayHold, err = e.mayHold(tx, o, snapshot.Thresholds, now); err != nil {
		return Outcome{}, err
	}
	if input.LastNotified, err = loadLastNotified(tx, o.valuesToEvaluate(), snapshot, now); err != nil {
		return Outcome{}, err
	}
	if err := e.loadSurrounding(tx, &input, o, s.NewerInBatch, now); err != nil {
		return Outcome{}, err
	}
	effects := Assess(o, input, e.rules, now)
	if len(effects.Alerts) > 0 {
		effects.PatientLabel = patient.row.label(o.PatientID)
	}
	outcome, err := apply(tx, b, effects, s.By, now)
	if err == nil {
		patient.update(effects, outcome, now)
		err = e.releaseHolds(tx, effects, outcome, snapshot, now)
	}
	if err == nil {
		err = e.splitSuspectRun(tx, b, confirmedReading{o, patient, s.By}, snapshot, now)
	}
	if err == nil && !o.newlyConfirmed && !o.suspicionDecided {
		err = e.reevaluateNewest(tx, b, confirmedReading{o, patient, s.By}, snapshot, now)
	}
	return outcome, err
}

// newObservation makes the observation of a reading; its FHIR form is a function of it, so it is ready at once.
func (e *Evaluator) newObservation(s Submission, now time.Time) Observation {
	o := Observation{
		ID: collections.NewUUID(), PatientID: s.PatientID, Reading: s.Reading, Source: s.Source, Origin: s.origin(),
		Review:       Accepted,
		ProcessingMS: float64(now.Sub(s.ReceivedAt).Microseconds()) / 1000, CreatedAt: now, UpdatedAt: now, partial: s.Partial,
	}
	if !s.AllowDuplicates {
		o.readingKey, o.gatewayKey = s.key, s.GatewayKey
		if o.readingKey == "" {
			o.readingKey = readingKey(s.PatientID, s.Reading)
		}
	}
	if o.setConfirmation(s, now); s.skipsEvaluation() {
		o.Review, o.SuspectReason = Suspect, ReasonDeviceClock
		return o
	}
	e.prepareFHIR(&o, now)
	return o
}

func (e *Evaluator) prepareFHIR(o *Observation, now time.Time) {
	if e.rules.AutoTransform {
		o.FHIRStatus, o.FHIRVersion, o.TransformedAt = collections.FHIRPending, 1, now
	}
}

// findPatient finds the patient of a submission and checks that this reading can be theirs.
func (e *Evaluator) findPatient(tx core.App, m *patientCache, s Submission) (readingPatient, error) {
	patient, err := m.patient(tx, s.PatientID)
	if err != nil {
		return readingPatient{}, err
	}
	switch h := patient.row; {
	case h.DeletedAt != "": // deleted patients do not exist
		return readingPatient{}, fault.Missing()
	case !h.Active:
		return readingPatient{}, fault.Field("patient_id", "This patient is archived.")
	case !s.WrongClock && patient.isBeforeBirth(s.PatientID, s.Reading.MeasuredAt.In(collections.Zone(h.TimeZone, e.rules.PracticeZone))):
		return readingPatient{}, fault.Field("measured_at", "Measurement time is before the patient's date of birth.")
	}
	assigned, err := checkDeviceHolder(tx, m, s.PatientID, s.Reading)
	return readingPatient{patient, assigned}, err
}

func loadPatientRow(tx core.App, patientID string) (h patientRow, err error) {
	// A subquery, since SQLite takes five times as long for an outer join.
	err = tx.DB().NewQuery(`SELECT p.active, p.deleted_at, p.time_zone, p.date_of_birth, p.first_name, p.last_name, p.mrn,
		COALESCE((SELECT u.email FROM users u WHERE u.id = p.primary_provider AND u.is_active = TRUE), '') AS provider_email
		FROM patients p WHERE p.id = {:id}`).
		Bind(dbx.Params{"id": patientID}).One(&h)
	if err != nil {
		err = fmt.Errorf("find patient of reading: %w", err)
	}
	return h, fault.OrMissing(err)
}

// isBeforeBirth reports whether the time, in the patient's zone, lies before the date of birth. A date that cannot be opened
// stands in no reading's way. Source: docs/decisions/conventions.md, "Future and past measurement times".
func (k *cachedPatient) isBeforeBirth(patientID string, at time.Time) bool {
	day := at.Format(time.DateOnly)
	if k.earliestValidDay != "" && day >= k.earliestValidDay {
		return false
	}
	born, err := collections.OpenValue(k.row.BirthDate, collections.Patients, collections.PatientDateOfBirth, patientID)
	if err == nil && day < born {
		return true
	}
	k.earliestValidDay = day
	return false
}

// checkDeviceHolder reports whether the device was assigned to the patient when the reading was taken; a reading from a device
// that somebody else held then is refused. Source: docs/decisions/observations.md, "Patient and device checks".
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

// insertObservationSQL stores a row unless its patient has the reading already, measured within the same second. It fails as it would without OR FAIL, for
// it stores one row; but SQLite keeps no journal of the statement's own, which it would because each row is told to those who follow the changes.
var insertObservationSQL = func() string {
	var names, values []string
	number := map[string]string{}
	for i, c := range (Observation{}).cells() {
		names, values = append(names, c.column), append(values, fmt.Sprintf("?%d", i+1))
		number[c.column] = values[i]
	}
	second := fmt.Sprintf("?%d", len(values)+1) // a call of substr could fail, and the statement would have its journal
	return "INSERT OR FAIL INTO observations (" + strings.Join(names, ", ") + ") SELECT " + strings.Join(values, ", ") +
		" WHERE NOT EXISTS (SELECT 1 FROM observations WHERE patient = " + number["patient"] + " AND observation_type = " + number["observation_type"] +
		" AND measured_at BETWEEN " + second + " AND " + second + " || '999999Z' AND " + collections.HasReadingKey(number["reading_key"]) + ")" +
		" ON CONFLICT DO NOTHING"
}()

// insert stores the observation unless a unique key says that it is there already.
func insert(tx core.App, o Observation) (stored bool, err error) {
	cells := o.cells()
	values := make([]any, len(cells)+1)
	for i, c := range cells {
		values[i] = c.value
	}
	at := collections.Instant(o.Reading.MeasuredAt)
	values[len(cells)] = at[:min(len(at), len("2026-01-15T13:45:00."))] // comes before all fractions of the second
	n, err := collections.Write(tx, insertObservationSQL, values...)
	if err != nil {
		return false, fmt.Errorf("store observation: %w", err)
	}
	return n == 1, nil
}

// findDuplicate answers for a reading one of whose keys is taken: the same reading again, or a gateway that contradicts itself. It does so even
// where the values are those of a reading that came another way; only one that came from the gateway itself, and has not got the key,
// was put beside the key's own reading by a person. keyless says that the stored reading is to have the gateway's key, which nobody has.
func findDuplicate(app core.App, o Observation) (outcome Outcome, keyless bool, err error) {
	same, err := o.findStored(app)
	if err != nil && !collections.Missing(err) {
		return Outcome{}, false, err
	}
	stored := err == nil
	if stored && (o.gatewayKey == "" || same.GetString(collections.ObservationSource) == string(vitals.SourceGateway)) {
		return Outcome{Observation: ObservationFromRecord(same), Duplicate: true}, false, nil
	}
	first, err := collections.FindObservationByGatewayKey(app, o.gatewayKey)
	switch {
	case err == nil && o.partial && readingKey(collections.PatientOf(first), readingFromRecord(first).As(o.Reading)) == o.readingKey:
		return Outcome{Observation: ObservationFromRecord(first), Duplicate: true}, false, nil
	case err == nil && (!stored || first.Id != same.Id):
		return Outcome{Observation: ObservationFromRecord(first), Conflict: true}, false, nil
	case stored && (err == nil || collections.Missing(err)):
		return Outcome{Observation: ObservationFromRecord(same), Duplicate: true}, same.GetString(collections.ObservationGatewayKey) == "", nil
	}
	return Outcome{}, false, err
}
