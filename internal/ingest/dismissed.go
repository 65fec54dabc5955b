package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

// storeDiscarded notes a stored reading that somebody had discarded when it came with a time in the future: it is entered in error from the
// beginning, so that nobody hears again of what a person has decided. asked is what asking came to.
// Source: docs/decisions/devices.md, "Future clock".
func (e *Evaluator) storeDiscarded(tx core.App, b *writeBatch, o Observation, s Submission, why phi.Text, lookupErr error, now time.Time) (Outcome, error) {
	if lookupErr != nil {
		return Outcome{}, lookupErr
	}
	o.EnteredInError, o.FHIRStatus, o.FHIRVersion, o.TransformedAt = true, "", 0, time.Time{}
	if err := storeReview(tx, o, now); err != nil {
		return Outcome{}, err
	}
	system := systemActor(s.By)
	if err := collections.SetEnteredInError(tx, o.ID, system.Email, why, 0, now); err != nil {
		return Outcome{}, err
	}
	a := effectsWriter{tx: tx, batch: b, effects: Effects{Observation: o}, by: s.By, now: now}
	if err := a.auditObservation(); err != nil {
		return Outcome{}, err
	}
	err := b.trail.Add(audit.Entry{
		Event: audit.ObservationEnteredInError, Actor: system, ResourceType: audit.ResourceObservation, ResourceID: o.ID, PatientID: o.PatientID, Reason: why,
	}, now)
	if err != nil {
		return Outcome{}, err
	}
	b.totals[dayTotal{o.Reading.MeasuredAt.In(e.rules.PracticeZone).Format(time.DateOnly), string(o.Reading.Kind), o.status()}]++
	outcome := Outcome{Observation: o, CheckDevice: true}
	b.processing = append(b.processing, outcome)
	return outcome, nil
}
