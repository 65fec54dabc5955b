package emr

import (
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

// mostAsked bounds the transmissions that people asked for and that wait for a free sender.
const mostAsked = 256

// onItsWay is where an observation is on its way to the EMR.
type onItsWay struct{ collections.Inflight }

func findOnItsWay(tx core.App, observationID string) (onItsWay, error) {
	o, err := collections.FindInflight(tx, observationID)
	if collections.IsNotFound(err) {
		err = fault.Missing()
	}
	return onItsWay{o}, err
}

// sendable refuses what is under way or has arrived: the EMR would have it twice. A suspect reading is not for it, nor one entered in error, but
// where its copy is to be corrected.
func (s onItsWay) sendable() error {
	if s.Withdrawn && !s.HasCopy {
		return fault.State("invalid_state", "The observation was entered in error.")
	}
	if s.Suspect {
		return fault.State("invalid_state", "The observation is suspect: nobody has confirmed it.")
	}
	switch s.Status {
	case collections.FHIRProcessing:
		return fault.State("invalid_state", "The observation is being transmitted.")
	case collections.FHIRTransmitted:
		return fault.State("invalid_state", "The observation has been transmitted.")
	}
	return nil
}

// Transform renders the FHIR form anew: the version rises, and the observation is due at once, whatever came before.
// An observation that has no FHIR form keeps why, and is refused as not_transformed; so is, as invalid_state, one that is
// under way or has arrived. Source: docs/decisions/fhir.md, "Transform".
func (w *Worker) Transform(app core.App, observationID string, by audit.Actor, now time.Time) error {
	var unfit bool
	err := app.RunInTransaction(func(tx core.App) (err error) {
		s, err := findOnItsWay(tx, observationID)
		if err == nil {
			err = s.sendable()
		}
		if err != nil {
			return err
		}
		stored, err := w.Load(tx, observationID)
		if err != nil {
			return err
		}
		if _, err := fhir.Observation(stored, "").Encode(); err != nil {
			unfit = true
			return collections.RecordTransformError(tx, observationID, "The reading has no FHIR form.")
		}
		return s.transformed(tx, stored, w.HeartRate && fhir.HasHeartRate(stored.Reading), by, now)
	})
	if err != nil {
		return err
	}
	if unfit {
		return fault.State("not_transformed", "The observation has no FHIR form.")
	}
	w.Wake()
	return nil
}

// transformed stores that there is a FHIR form, and the intent to deliver it.
func (s onItsWay) transformed(tx core.App, stored fhir.Stored, heartRate bool, by audit.Actor, now time.Time) error {
	observationID := stored.ID
	if err := collections.MarkTransformed(tx, observationID, s.Version+1, now); err != nil {
		return err
	}
	queued, err := collections.RequeueTransmission(tx, observationID, now)
	if err != nil {
		return err
	}
	if !queued {
		draft := Draft{ObservationID: observationID, PatientID: s.Patient, ObservationType: s.Kind}
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
		Event: audit.EMRTransform, Actor: by, ResourceType: audit.ResourceObservation, ResourceID: observationID, PatientID: s.Patient,
	}, now)
}

// RetryTransforms renders again what failed to become FHIR, oldest first, at most limit of them, and returns how many now
// have a FHIR form. Those that still have none stay as they are.
func (w *Worker) RetryTransforms(ctx context.Context, app core.App, limit int, now time.Time) (transformed int, err error) {
	owed, err := collections.FailedTransforms(ctx, app, limit)
	if err != nil {
		return 0, err
	}
	for _, id := range owed {
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

// Transmit takes one observation for delivery now, because a person asked for it: its transmission is in processing when
// it returns, and is sent in the background. A transmission that was given up may be sent again this way; when that fails
// it stays given up. Source: docs/decisions/transmissions.md, "One record per observation".
func (w *Worker) Transmit(app core.App, observationID string, by audit.Actor, now time.Time) (transmissionID string, err error) {
	if len(w.asked) == cap(w.asked) {
		return "", fault.New(fault.Unavailable, "service_unavailable", "Too many transmissions are waiting.").After(time.Minute)
	}
	claimed, err := w.claim(func() ([]Claimed, error) {
		c, err := takeAsked(app, observationID, by, now)
		if err != nil {
			return nil, err
		}
		return []Claimed{c}, nil
	})
	if err != nil {
		return "", err
	}
	select {
	case w.asked <- claimed[0]:
	default: // as good as lost: it is taken up as stuck
		w.own.Delete(claimed[0].ID)
	}
	return claimed[0].ID, nil
}

// takeAsked claims the transmission of one observation and notes who asked for it.
func takeAsked(app core.App, observationID string, by audit.Actor, now time.Time) (claimed Claimed, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		s, err := findOnItsWay(tx, observationID)
		if err != nil {
			return err
		}
		if s.Status == "" {
			return fault.State("not_transformed", "The observation has no FHIR form.")
		}
		if err := s.sendable(); err != nil {
			return err
		}
		claimed, err = claimOne(tx, observationID, now)
		if collections.IsNotFound(err) {
			return fault.State("not_transformed", "The observation was never queued: transform it first.")
		}
		if err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.EMRTransmit, Actor: by, ResourceType: audit.ResourceTransmission, ResourceID: claimed.ID, PatientID: s.Patient,
		}, now)
	})
	return claimed, err
}

// sendAsked sends what people asked for, beside the rounds, until ctx ends.
func (w *Worker) sendAsked(ctx context.Context, app core.App) {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-w.asked:
			if w.takeSlots(ctx, 1) == 0 {
				return
			}
			w.start(ctx, app, c, &group, func(_ Result, err error) {
				if err != nil && !errors.Is(err, ErrLost) {
					w.Log.Error("transmission not sent", slog.Any("error", err))
				}
			})
		}
	}
}

// justTransformed is how long after a person's transform a transmit is of the same wish.
// Source: docs/decisions/fhir.md, "Transform".
const justTransformed = 60 * time.Second

// Asked is what became of a transmission that a person asked for.
type Asked struct{ TransmissionID, FHIRStatus string }

// Deliver is [Worker.Transmit] for a person who may have transformed the observation just before: what the queue has taken up since, or has
// delivered, is what was asked for, and nothing is sent twice.
func (w *Worker) Deliver(app core.App, observationID string, by audit.Actor, now time.Time) (Asked, error) {
	id, err := w.Transmit(app, observationID, by, now)
	refusal, refused := errors.AsType[*fault.Error](err)
	if !refused || refusal.Code != "invalid_state" {
		return Asked{id, collections.FHIRProcessing}, err
	}
	found, lookErr := collections.FindActiveTransmission(app, observationID, string(audit.EMRTransform), now.Add(-justTransformed))
	if collections.IsNotFound(lookErr) {
		return Asked{}, err
	}
	return Asked{found.ID, found.Status}, lookErr
}
