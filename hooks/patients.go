package hooks

import (
	"log/slog"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/patients"
)

// guardPatient checks and completes a patient whoever writes it, gives a new one a row on the triage list, and ends what a
// deleted one has open.
func (h *hooks) guardPatient(e *core.RecordEvent) error {
	return patients.Guard(e.App, e.Record, writerOf(e.Record), fromDashboard(e.Record), h.Clock(), h.Zone, e.Next)
}

// refreshDirectory keeps names findable. The patient is stored; a directory that cannot be refreshed is rebuilt at the next start.
func (h *hooks) refreshDirectory(e *core.RecordEvent) error {
	if err := h.Directory.Refresh(e.App, e.Record.Id); err != nil {
		e.App.Logger().Error("directory not refreshed", slog.Any("error", err))
	}
	return e.Next()
}
