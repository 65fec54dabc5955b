package hooks

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/patients"
)

// keepMember lets only those onto a care team who may be on one.
func (h *hooks) keepMember(e *core.RecordEvent) error {
	if err := patients.KeepMember(e.App, e.Record, h.Clock()); err != nil {
		return err
	}
	return e.Next()
}
