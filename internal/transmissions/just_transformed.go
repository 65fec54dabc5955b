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
