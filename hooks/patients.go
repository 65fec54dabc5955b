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

// wakeForLinked tells the worker that readings may have waited until the EMR knew the patient.
func (h *hooks) wakeForLinked(e *core.RecordEvent) error {
	if collections.AsPatient(e.Record).ExternalID() != "" {
		h.Wake()
	}
	return e.Next()
}

// guardMember lets only those onto a care team who may be on one.
func (h *hooks) guardMember(e *core.RecordEvent) error {
	return unless(patients.GuardMember(e.App, e.Record, h.Clock()), e)
}

// guardConsent makes a new consent complete and lets an old one be revoked, and nothing else.
func (h *hooks) guardConsent(e *core.RecordEvent) error {
	if err := unless(patients.GuardConsent(e.App, e.Record, writerOf(e.Record), h.Clock()), e); err != nil {
		return err
	}
	return h.recheck(e, collections.PatientOf(e.Record), time.Time{})
}

// guardThresholds checks bounds whoever writes them, logs what changes, and ranks the patient anew.
func (h *hooks) guardThresholds(e *core.RecordEvent) error {
	return triage.GuardThresholds(e.App, e.Record, writerOf(e.Record), h.Clock(), e.Next)
}

// dropThresholds lets a patient fall back to the practice's bounds, which themselves stay.
func (h *hooks) dropThresholds(e *core.RecordEvent) error {
	if collections.PatientOf(e.Record) == "" {
		return router.NewBadRequestError("The practice's thresholds cannot be deleted.", nil)
	}
	return triage.DropThresholds(e.App, e.Record, writerOf(e.Record), h.Clock(), e.Next)
}
