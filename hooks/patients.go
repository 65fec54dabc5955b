package hooks

import (
	"log/slog"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/triage"
)

// guardPatient checks and completes a patient for every writer, adds a new one to the triage list, and closes what a deleted one has open.
func (h *hooks) guardPatient(e *core.RecordEvent) error {
	return patients.Guard(e.App, e.Record, writerOf(e.Record), fromDashboard(e.Record), h.Clock(), h.Zone, e.Next)
}

// refreshDirectory updates the search directory. A failure is only logged: the patient is stored, and the next start rebuilds the directory.
func (h *hooks) refreshDirectory(e *core.RecordEvent) error {
	if err := h.Directory.Refresh(e.App, e.Record.Id); err != nil {
		e.App.Logger().Error("patient directory: update failed; the next start rebuilds it", slog.Any("error", err))
	}
	return e.Next()
}

// wakeForLinked wakes the EMR worker: readings may have waited for the patient's EMR id.
func (h *hooks) wakeForLinked(e *core.RecordEvent) error {
	if collections.AsPatient(e.Record).ExternalID() != "" {
		h.Wake()
	}
	return e.Next()
}

// guardConsent completes a new consent and allows only the revocation of a stored one.
func (h *hooks) guardConsent(e *core.RecordEvent) error {
	if err := continueIf(patients.GuardConsent(e.App, e.Record, writerOf(e.Record), h.Clock()), e); err != nil {
		return err
	}
	return h.recheck(e, collections.PatientOf(e.Record), time.Time{})
}

// guardThresholds checks bounds for every writer, logs changes, and recomputes the patient's score.
func (h *hooks) guardThresholds(e *core.RecordEvent) error {
	return triage.GuardThresholds(e.App, e.Record, writerOf(e.Record), h.Clock(), e.Next)
}

// deleteThresholds resets a patient to the practice's thresholds, which themselves cannot be deleted.
func (h *hooks) deleteThresholds(e *core.RecordEvent) error {
	if collections.PatientOf(e.Record) == "" {
		return router.NewBadRequestError("The practice's thresholds cannot be deleted.", nil)
	}
	return triage.DropThresholds(e.App, e.Record, writerOf(e.Record), h.Clock(), e.Next)
}
