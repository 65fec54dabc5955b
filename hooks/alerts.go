package hooks

import (
	"errors"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/triage"
)

// guardAlert enforces the alert's state machine for every writer.
func (h *hooks) guardAlert(e *core.RecordEvent) error {
	return triage.GuardAlert(e.App, collections.AsAlert(e.Record), writerOf(e.Record), h.Clock(), e.Next)
}

// guardEscalation enforces the escalation's state machine for every writer.
func (h *hooks) guardEscalation(e *core.RecordEvent) error {
	err := triage.GuardEscalation(e.App, h.Billing, collections.AsEscalation(e.Record), writerOf(e.Record), h.Clock(), e.Next)
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind == fault.Invalid && len(refused.Fields) == 0 {
		return validation.Errors{"status": validation.NewError(refused.Code, refused.Detail)}
	}
	return asColumns(err)
}
