package hooks

import (
	"log/slog"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/triage"
)

// guardPatient checks and completes a patient for every writer, adds a new one to the triage list, and closes what a deleted one has open. Claims
// are rechecked when monitoring ends, which may be before today, or begins again.
func (h *hooks) guardPatient(e *core.RecordEvent) error {
	before, after := collections.AsPatient(e.Record.Original()), collections.AsPatient(e.Record)
	isMoved := !e.Record.IsNew() && after.GetBool(collections.PatientActive) != before.GetBool(collections.PatientActive)
	isInsuredAnew := !e.Record.IsNew() && (after.InsurancePayerID() != before.InsurancePayerID() || after.SecondaryPayerID() != before.SecondaryPayerID())
	err := patients.Guard(e.App, e.Record, writerOf(e.Record), fromDashboard(e.Record), h.Clock(), h.Zone, e.Next)
	if err == nil && isInsuredAnew && h.Billing != nil {
		err = h.Billing.RecheckInsurance(e.App, e.Record.Id, h.Clock())
	}
	if err != nil || !isMoved {
		return err
	}
	return h.recheck(e, e.Record.Id, time.Time{})
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
	if err := continueUnless(patients.GuardConsent(e.App, e.Record, writerOf(e.Record), h.Clock()), e); err != nil {
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
	if err := triage.DeleteThresholds(e.App, e.Record, writerOf(e.Record), h.Clock(), e.Next); err != nil {
		return err
	}
	p, err := collections.FindPatientAnyState(e.App, collections.PatientOf(e.Record))
	if err != nil {
		return collections.IgnoreNotFound(err)
	}
	return templates.Reconsider(e.App, p, nil, h.Clock(), h.Zone) // no template is applied any more
}

// guardTemplate checks a threshold template for every writer, keeps its version and sign-off, and proposes it to the patients that it fits.
func (h *hooks) guardTemplate(e *core.RecordEvent) error {
	if err := continueUnless(templates.Guard(e.App, e.Record, h.Clock()), e); err != nil {
		return err
	}
	return templates.ProposeChanged(e.App, e.Record, h.Clock(), h.Zone)
}

// deleteTemplate ends the proposals of a deleted template.
func (h *hooks) deleteTemplate(e *core.RecordEvent) error {
	if err := e.Next(); err != nil {
		return err
	}
	return templates.ProposeChanged(e.App, e.Record, h.Clock(), h.Zone)
}
