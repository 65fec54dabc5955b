package transmissions

import (
	"errors"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// justTransformed is how long after a person's transform a transmit is of the same wish.
// Source: docs/decisions/fhir.md, "When is an observation transformed".
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
	found, lookErr := collections.FindTaken(app, observationID, string(audit.EMRTransform), now.Add(-justTransformed))
	if collections.Missing(lookErr) {
		return Asked{}, err
	}
	return Asked{found.ID, found.Status}, lookErr
}

// Rendered is what became of a transform that a person asked for. TransmissionID is empty where it is queued.
type Rendered struct {
	Asked
	TransformedAt time.Time
}

// Render is [Worker.Transform] for a person, who need not be quicker than the queue: what the service has transformed by itself and taken up, or
// delivered, less than a minute ago is what is asked for. It stays as it stands, and the wish is on record, so that a transmit may follow.
func (w *Worker) Render(app core.App, observationID string, by audit.Actor, now time.Time) (r Rendered, err error) {
	err = w.Transform(app, observationID, by, now)
	refusal, refused := errors.AsType[*fault.Error](err)
	if !refused || refusal.Code != "invalid_state" {
		return Rendered{Asked{FHIRStatus: collections.FHIRPending}, now}, err
	}
	lookErr := app.RunInTransaction(func(tx core.App) error {
		found, err := collections.FindJustSent(tx, observationID, string(audit.EMRTransform), now.Add(-justTransformed))
		if err != nil {
			return err
		}
		r = Rendered{Asked{found.ID, found.Status}, collections.ParseInstant(found.TransformedAt)}
		return audit.Append(tx, audit.Entry{
			Event: audit.EMRTransform, Actor: by, ResourceType: audit.ResourceObservation, ResourceID: observationID, PatientID: found.Patient,
		}, now)
	})
	if collections.Missing(lookErr) {
		return Rendered{}, err
	}
	return r, lookErr
}
