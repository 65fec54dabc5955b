package escalations

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
)

// CancelWithout cancels, inside the caller's transaction, an escalation of the system's that stands on nothing but the given alert, which was
// taken back. One that other alerts belong to stays, and so does one that a person opened.
// Source: docs/decisions/escalations.md, "Escalation state machine".
func CancelWithout(tx core.App, id, alertID string, by audit.Actor, now time.Time) error {
	if id == "" {
		return nil
	}
	e, err := find(tx, id)
	if err != nil {
		return err
	}
	if Status(e.Status()).Closed() || e.CreatedBy() != alerts.System {
		return nil
	}
	stands, err := collections.StandsWithout(tx, id, alertID)
	if err != nil || stands {
		return err
	}
	was := e.Status()
	e.Set(collections.EscalationStatus, string(StatusCancelled))
	e.SetCancelled(author(by), now)
	e.SetUpdatedAt(now)
	if err := e.Store(tx); err != nil {
		return err
	}
	return note(tx, audit.EscalationUpdate, e.Id, e.PatientID(), by,
		audit.Changes{collections.EscalationStatus: {Old: was, New: string(StatusCancelled)}}, now)
}
