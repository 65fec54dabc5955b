package emr

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// The outcomes that a person states.
const (
	OutcomePresent = "present"
	OutcomeAbsent  = "absent"
)

// Resolve resolves the unknown outcome of a delivery by a person's word: a present one counts as transmitted, an absent one is sent again.
// Source: docs/decisions/transmissions.md, "Taken without a result".
func (w *Worker) Resolve(app core.App, id, outcome string, notes phi.Text, by audit.Actor, now time.Time) error {
	err := app.RunInTransaction(func(tx core.App) error {
		found, err := collections.FindTransmission(tx, id)
		if err != nil {
			return fault.OrMissing(err)
		}
		done, err := collections.ResolveTransmission(tx, id, outcome == OutcomePresent, now)
		if err != nil {
			return err
		}
		if !done {
			return fault.State("invalid_state", "The outcome of this transmission is not unknown.")
		}
		if found.Form() == collections.FormDocument && outcome == OutcomePresent {
			if err := collections.MarkReadingsInDocument(tx, id, now); err != nil {
				return err
			}
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.EMRResolve, Actor: by, ResourceType: audit.ResourceTransmission, ResourceID: id, PatientID: found.PatientID(), Reason: notes,
			Changes: audit.Changes{"outcome": {Old: "unknown", New: outcome}},
		}, now)
	})
	if err == nil {
		w.Wake()
	}
	return err
}
