package hooks

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// recheck recounts a patient's billing entries after a change of facts that they may depend on.
func (h *hooks) recheck(e *core.RecordEvent, patientID string, since time.Time) error {
	if h.Billing == nil {
		return nil
	}
	return h.Billing.Recheck(e.App, patientID, since, h.Clock())
}

// keepAuthorRole stores the role of who spent the time: a later one does not change who was qualified.
func (h *hooks) keepAuthorRole(e *core.RecordEvent) error {
	if err := collections.AsTimeEntry(e.Record).KeepAuthorRole(e.App); err != nil {
		return err
	}
	return e.Next()
}

// recheckTime rechecks entries after time was corrected that they may bill.
func (h *hooks) recheckTime(e *core.RecordEvent) error {
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
