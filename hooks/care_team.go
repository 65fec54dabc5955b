package hooks

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/patients"
)

// guardMember lets only those onto a care team who may be on one.
func (h *hooks) guardMember(e *core.RecordEvent) error {
	if err := patients.GuardMember(e.App, e.Record, h.Clock()); err != nil {
		return err
	}
	return e.Next()
}
