package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// ReadingStore stores readings with their effects, by the practice's rules.
type ReadingStore struct {
	rules Rules
}

// NewReadingStore returns a store with the given rules.
func NewReadingStore(rules Rules) *ReadingStore { return &ReadingStore{rules: rules} }

// Ingest stores one reading with all effects inside the caller's transaction. It returns a fault before anything is written; after any
// other error the caller must roll back.
func (rs *ReadingStore) Ingest(tx core.App, s Submission, now time.Time) (Outcome, error) {
	b, err := newWriteBatch(tx)
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := rs.storeReading(tx, b, nil, s, now)
	if err != nil {
		return outcome, err
	}
	return outcome, b.store(tx)
}

func (rs *ReadingStore) storeReading(tx core.App, b *writeBatch, m *patientCache, s Submission, now time.Time) (Outcome, error) {
	s, err := rs.judgeTime(tx, m, s, now)
	if err != nil {
		return Outcome{}, err
	}
	if s.IsPart {
		return rs.mergePartial(tx, b, m, s, now)
	}
	patient, err := rs.findPatient(tx, m, s)
	if err != nil {
		return Outcome{}, err
	}
	o := rs.newObservation(s, now)
	stored, err := insertObservation(tx, o)
	if err != nil {
		return Outcome{}, err
	}
	if !stored {
		outcome, keyless, err := findDuplicate(tx, o)
		switch {
		case err == nil && keyless:
			err = collections.SetGatewayKey(tx, outcome.Observation.ID, o.gatewayKey)
		case err == nil && s.AwaitsParts && outcome.Conflict: // more values, none of them different
			s.Reading, s.key = s.Reading.Except(outcome.Observation.Reading), ""
			return rs.mergePartial(tx, b, m, s, now)
		case err == nil && s.AwaitsParts && outcome.Duplicate:
			_, err = collections.FindObservationByGatewayKey(tx, o.gatewayKey)
			if outcome.KeyAlias = collections.IsNotFound(err); outcome.KeyAlias {
				err = nil
			}
		}
		return outcome, err
	}
	if s.endsClockProof { // not for a duplicate, which may be old
		if err := collections.EndClockProof(tx, s.Reading.DeviceID); err != nil {
			return Outcome{}, err
		}
	}
	check, err := recordSighting(tx, o, s, now)
	if err != nil {
		return Outcome{}, err
	}
	if s.TimeInDoubt {
		outcome, err := rs.evaluateDoubtful(tx, b, o, patient, s, now)
		outcome.CheckDevice = check
		return outcome, err
	}
	if check && s.DiscardedBefore != nil {
		if reason, dismissed, err := s.DiscardedBefore(tx); err != nil || dismissed {
			return rs.storeDiscarded(tx, b, o, s, reason, err, now)
		}
	}
	outcome, err := rs.evaluateAndApply(tx, b, o, patient, s, now)
	outcome.CheckDevice = check
	return outcome, err
}

// recordSighting updates the device registry from a reading. A device id typed by a portal user is kept in the observation but not
// registered: it is no sign that the device works. Source: docs/decisions/observations.md, "Patient and device checks".
func recordSighting(tx core.App, o Observation, s Submission, now time.Time) (check bool, err error) {
	if o.Source == vitals.SourcePortal {
		return false, nil
	}
	report := s.Device
	if !s.UsesReceiptTime {
		report.ReceivedAt = s.Arrival.At
	}
	return devices.RecordSighting(tx, o.Reading, report, now)
}

// evaluateAndApply decides and writes the effects of a stored observation in the transaction's write batch.
func (rs *ReadingStore) evaluateAndApply(
	tx core.App, b *writeBatch, o Observation, patient readingPatient, s Submission, now time.Time,
) (Outcome, error) {
	snapshot, err := patient.snapshotFor(tx, o.PatientID, o.Reading, now)
	if err != nil {
		return Outcome{}, err
	}
	if o.Reading.Kind.Definition().SuspectParameter != nil {
		if outcome, decided, err := rs.resolveSuspicion(tx, b, o, snapshot, patient, s.By, now); decided || err != nil {
			if err == nil {
				err = closeCorrected(tx, b, o, s, now)
			}
			return outcome, err
		}
	}
	input, err := rs.loadAssessInput(tx, o, patient, s, snapshot, now)
	if err != nil {
		return Outcome{}, err
	}
	effects := Assess(o, input, rs.rules, now)
	if len(effects.Alerts) > 0 {
		effects.PatientLabel = patient.row.label(o.PatientID)
	}
	outcome, err := applyEffects(tx, b, effects, s.By, now)
	if err == nil {
		patient.update(effects, outcome, now)
		err = rs.releaseHolds(tx, effects, outcome, snapshot, now)
	}
	if err == nil && len(effects.Replaced) > 0 {
		if err = endReplaced(tx, b, effects.Replaced, s.By, now); err == nil {
			patient.snapshot = nil
			_, err = triage.Rescore(tx, o.PatientID, now)
		}
	}
	if err == nil {
		trigger := scoreTrigger{readingToEvaluate{o, patient, s.By}, effects.SnapshotAfter, s.isClockUnproven, s.NewerInBatch}
		err = rs.updateEarlyWarning(tx, b, trigger, now)
	}
	if err == nil {
		err = closeCorrected(tx, b, o, s, now)
	}
	if err == nil && !o.newlyConfirmed {
		err = rs.reconcileSuspectAlerts(tx, b, readingToEvaluate{o, patient, s.By}, snapshot, now)
	}
	if err == nil && !o.newlyConfirmed && !o.suspicionDecided {
		err = rs.correctForOrder(tx, b, readingToEvaluate{o, patient, s.By}, snapshot, now)
	}
	if err == nil {
		err = rs.watchSlowChanges(tx, b, o, patient, snapshot.Thresholds, &outcome, s.By, now)
	}
	return outcome, err
}

// loadAssessInput reads what the effects of a reading depend on.
func (rs *ReadingStore) loadAssessInput(
	tx core.App, o Observation, patient readingPatient, s Submission, snapshot triage.PatientSnapshot, now time.Time,
) (input AssessInput, err error) {
	input = AssessInput{
		Snapshot: snapshot, PrimaryProvider: patient.row.PrimaryProvider, PatientZone: collections.ZonesOf(patient.row.TimeZone, patient.row.EarlierZones, rs.rules.PracticeZone).At(o.Reading.MeasuredAt),
		DeviceAssigned: patient.deviceAssigned, IsClockUnproven: s.isClockUnproven,
	}
	if input.Raised, err = raisedInDoubt(tx, o); err != nil {
		return input, err
	}
	if input.Hold, err = rs.holdFor(tx, o, snapshot.Thresholds, now); err != nil {
		return input, err
	}
	if input.LastNotified, err = loadLastNotified(tx, o.valuesToEvaluate(), snapshot, now); err != nil {
		return input, err
	}
	if input.DoubtfulTimeAlert, err = draftEndedProofAlert(tx, o, s, input.PatientZone, now); err != nil {
		return input, err
	}
	if err := rs.loadSurrounding(tx, &input, o, s.NewerInBatch, now); err != nil {
		return input, err
	}
	return input, rs.loadPushes(tx, &input, o)
}

// raisedInDoubt returns the alerts that a reading raised before its time was confirmed.
func raisedInDoubt(tx core.App, o Observation) ([]*collections.Alert, error) {
	if !o.newlyConfirmed || o.SuspectReason != ReasonDeviceClock {
		return nil, nil
	}
	raised, err := collections.AlertsOfObservations(tx, o.ID)
	return raised[o.ID], err
}

// newObservation returns the observation of a reading. Its FHIR form is computed from it and needs no further step.
func (rs *ReadingStore) newObservation(s Submission, now time.Time) Observation {
	o := Observation{
		ID: collections.NewUUID(), PatientID: s.PatientID, Reading: s.Reading, Source: s.Source, Origin: s.origin(), LeftOut: s.LeftOut,
		Review:       Accepted,
		ProcessingMS: float64(now.Sub(s.ReceivedAt).Microseconds()) / 1000, CreatedAt: now, UpdatedAt: now, awaitsParts: s.AwaitsParts,
	}
	if !s.AllowDuplicates {
		o.readingKey, o.gatewayKey = s.key, s.GatewayKey
		if o.readingKey == "" {
			o.readingKey = readingKey(s.PatientID, s.Reading)
		}
	}
	if s.Arrival.IsDeferred {
		o.ReceivedAt = s.Arrival.At
	}
	if o.setConfirmation(s, now); s.TimeInDoubt {
		o.Review, o.SuspectReason = Suspect, ReasonDeviceClock
		return o
	}
	rs.prepareFHIR(&o, now)
	return o
}

func (rs *ReadingStore) prepareFHIR(o *Observation, now time.Time) {
	if rs.rules.AutoTransform {
		o.FHIRStatus, o.FHIRVersion, o.TransformedAt = collections.FHIRPending, 1, now
	}
}
