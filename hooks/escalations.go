package hooks

import (
	"errors"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
)

// keepEscalation holds an escalation to its state machine, with the same consequences whoever opens or changes it.
func (h *hooks) keepEscalation(e *core.RecordEvent) error {
	err := escalations.Keep(e.App, e.Record, writerOf(e.Record), h.Clock(), e.Next)
	var refused *fault.Error
	if errors.As(err, &refused) && refused.Kind == fault.Invalid && len(refused.Fields) == 0 {
		return validation.Errors{"status": validation.NewError(refused.Code, refused.Detail)}
	}
	return asColumns(err)
}
