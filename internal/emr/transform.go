package emr

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// maxManual bounds the manual transmits that wait for the worker.
const maxManual = 256

// observationDelivery is the delivery state of an observation.
type observationDelivery struct {
	collections.ObservationDelivery
}

func findInflight(tx core.App, observationID string) (observationDelivery, error) {
	o, err := collections.FindObservationDelivery(tx, observationID)
	if collections.IsNotFound(err) {
		err = fault.Missing()
	}
	return observationDelivery{o}, err
}

// checkSendable returns a fault for a delivery under way or transmitted, which would create a duplicate, for a suspect reading, and for one
// entered in error unless its copy must be corrected.
func (io observationDelivery) checkSendable() error {
	if io.Retracted && !io.HasCopy {
		return fault.State("invalid_state", "The observation was entered in error.")
	}
	if io.Suspect {
		return fault.State("invalid_state", "The observation is suspect: a clinician must confirm it first.")
	}
	switch io.Status {
	case collections.FHIRProcessing:
		return fault.State("invalid_state", "The observation is being transmitted.")
	case collections.FHIRTransmitted:
		return fault.State("invalid_state", "The observation has been transmitted.")
	}
	return nil
}

// Transform renders the FHIR resource again: its version rises, and the observation is due at once from any earlier state. If the reading
// has no FHIR form it stores the reason and returns not_transformed; for a delivery under way or transmitted it returns invalid_state.
// Source: docs/decisions/fhir.md, "Transform".
func (w *Worker) Transform(app core.App, observationID string, by audit.Actor, now time.Time) error {
	var hasNoForm bool
	err := app.RunInTransaction(func(tx core.App) (err error) {
		s, err := findInflight(tx, observationID)
		if err == nil {
			err = s.checkSendable()
		}
		if err != nil {
			return err
		}
		if unknown, err := collections.HasUnknownOutcome(tx, observationID); err != nil || unknown {
			return cmp.Or(err, error(fault.State("outcome_unknown", "The EMR took the observation and does not show it. State first whether it is there.")))
		}
		stored, err := w.Load(tx, observationID)
		if err != nil {
			return err
		}
		if _, err := fhir.Observation(stored, "").Encode(); err != nil {
			hasNoForm = true
			return collections.RecordTransformError(tx, observationID, "The reading has no FHIR form.")
		}
		return s.storeTransform(tx, stored, w.HeartRate && fhir.HasHeartRate(stored.Reading), by, now)
	})
	if err != nil {
		return err
	}
	if hasNoForm {
		return fault.State("not_transformed", "The observation has no FHIR form.")
	}
	w.Wake()
	return nil
}

// storeTransform records that there is a FHIR form, and queues its delivery.
func (io observationDelivery) storeTransform(tx core.App, stored fhir.StoredObservation, heartRate bool, by audit.Actor, now time.Time) error {
	observationID := stored.ID
	if err := collections.MarkTransformed(tx, observationID, io.Version+1, now); err != nil {
		return err
	}
	queued, err := collections.RequeueTransmission(tx, observationID, now)
	if err != nil {
		return err
	}
	if !queued {
		draft := Draft{ObservationID: observationID, PatientID: io.Patient, ObservationType: io.Kind}
		if _, err := Queue(tx, draft, now); err != nil {
			return err
		}
		if draft.Form = collections.FormHeartRate; heartRate {
			if _, err := Queue(tx, draft, now); err != nil {
				return err
			}
		}
	}
	return audit.Append(tx, audit.Entry{
		Event: audit.EMRTransform, Actor: by, ResourceType: audit.ResourceObservation, ResourceID: observationID, PatientID: io.Patient,
	}, now)
}

// RetryTransforms renders observations without a FHIR form again, oldest first, at most limit, and returns how many now have one. The
// others stay as they are.
func (w *Worker) RetryTransforms(ctx context.Context, app core.App, limit int, now time.Time) (transformed int, err error) {
	failed, err := collections.FailedTransforms(ctx, app, limit)
	if err != nil {
		return 0, err
	}
	for _, id := range failed {
		err := w.Transform(app, id, audit.System(), now)
		if _, refused := errors.AsType[*fault.Error](err); err != nil && !refused {
			return transformed, err
		}
		if err == nil {
			transformed++
		}
	}
	return transformed, nil
}

// Transmit sends one observation at a person's request: its delivery is in processing when Transmit returns, and is sent in the background. A
// dead letter may be sent this way; if that fails it stays a dead letter.
// Source: docs/decisions/transmissions.md, "One record per observation".
func (w *Worker) Transmit(app core.App, observationID string, by audit.Actor, now time.Time) (transmissionID string, err error) {
	if len(w.manual) == cap(w.manual) {
		return "", fault.New(fault.Unavailable, "service_unavailable", "Too many transmissions are waiting.").After(time.Minute)
	}
	leased, err := w.lease(func() ([]Leased, error) {
		c, err := leaseManual(app, observationID, by, now)
		if err != nil {
			return nil, err
		}
		return []Leased{c}, nil
	})
	if err != nil {
		return "", err
	}
	select {
	case w.manual <- leased[0]:
	default: // the queue is full: it is recovered as stuck
		w.leases.Delete(leased[0].ID)
	}
	return leased[0].ID, nil
}

// leaseManual leases the delivery of one observation and records who requested it.
func leaseManual(app core.App, observationID string, by audit.Actor, now time.Time) (leased Leased, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		s, err := findInflight(tx, observationID)
		if err != nil {
			return err
		}
		if s.Status == "" {
			return fault.State("not_transformed", "The observation has no FHIR form.")
		}
		if err := s.checkSendable(); err != nil {
			return err
		}
		leased, err = leaseOne(tx, observationID, now)
		if collections.IsNotFound(err) {
			return fault.State("not_transformed", "The observation was never queued: transform it first.")
		}
		if err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.EMRTransmit, Actor: by, ResourceType: audit.ResourceTransmission, ResourceID: leased.ID, PatientID: s.Patient,
		}, now)
	})
	return leased, err
}

// sendManual sends manual transmits, concurrently with the rounds, until ctx ends.
func (w *Worker) sendManual(ctx context.Context, app core.App) {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-w.manual:
			if w.acquireInflight(ctx, 1) == 0 {
				return
			}
			w.start(ctx, app, c, &group, func(_ Result, err error) {
				if err != nil && !errors.Is(err, ErrLeaseExpired) {
					w.Log.Error("EMR worker could not finish a manual transmit; it is recovered as stuck", slog.Any("error", err))
				}
			})
		}
	}
}

// transformWindow is how long after a person's transform a transmit belongs to the same request.
// Source: docs/decisions/fhir.md, "Transform".
const transformWindow = 60 * time.Second

// ManualDelivery is the state of a delivery that a person requested.
type ManualDelivery struct{ TransmissionID, FHIRStatus string }

// Deliver is [Worker.Transmit] for a person who may have transformed the observation just before. If the worker has leased or sent it since,
// Deliver returns that delivery and sends nothing twice.
func (w *Worker) Deliver(app core.App, observationID string, by audit.Actor, now time.Time) (ManualDelivery, error) {
	id, err := w.Transmit(app, observationID, by, now)
	refusal, refused := errors.AsType[*fault.Error](err)
	if !refused || refusal.Code != "invalid_state" {
		return ManualDelivery{id, collections.FHIRProcessing}, err
	}
	found, lookErr := collections.FindActiveTransmission(app, observationID, string(audit.EMRTransform), now.Add(-transformWindow))
	if collections.IsNotFound(lookErr) {
		return ManualDelivery{}, err
	}
	return ManualDelivery{found.ID, found.Status}, lookErr
}
