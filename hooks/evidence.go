package hooks

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// recheck has what was billed for a patient counted anew, because something that it may rest on has changed.
func (h *hooks) recheck(e *core.RecordEvent, patientID string, since time.Time) error {
	if h.Billing == nil {
		return nil
	}
	return h.Billing.Recheck(e.App, patientID, since, h.Clock())
}

// followTime: what was billed may rest on time that is corrected.
func (h *hooks) followTime(e *core.RecordEvent) error {
	before := collections.AsTimeEntry(e.Record.Original()).StartedAt()
	if err := e.Next(); err != nil {
		return err
	}
	after := collections.AsTimeEntry(e.Record).StartedAt()
	if before.Before(after) {
		after = before
	}
	return h.recheck(e, collections.PatientOf(e.Record), after)
}
