package hooks

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/devices"
)

// keepAssignment keeps a device from being in two hands at once.
func (h *hooks) keepAssignment(e *core.RecordEvent) error {
	if err := devices.KeepAssignment(e.App, e.Record); err != nil {
		return err
	}
	return e.Next()
}
