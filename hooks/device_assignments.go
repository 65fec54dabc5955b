package hooks

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/observations"
)

// guardAssignment keeps a device from being in two hands at once, and the days that count for billing in step with who held it.
func (h *hooks) guardAssignment(e *core.RecordEvent) error {
	if err := devices.GuardAssignment(e.App, e.Record); err != nil {
		return err
	}
	return observations.FollowAssignment(e.App, e.Record, h.Zone, e.Next)
}
