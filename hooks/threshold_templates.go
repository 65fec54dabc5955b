package hooks

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/templates"
)

// guardTemplate checks a template for every writer, and keeps its version and sign-off.
func (h *hooks) guardTemplate(e *core.RecordEvent) error {
	return continueIf(templates.Guard(e.App, e.Record, h.Clock()), e)
}
