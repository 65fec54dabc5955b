package hooks

import (
	"errors"
	"slices"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
)

// createObservation applies the checks and consequences of every reading to one created as a record.
func (h *hooks) createObservation(e *core.RecordEvent) error {
	_, err := h.ReadingStore.CreateFromRecord(e.App, e.Record, writerOf(e.Record), h.Clock(), e.Next)
	return asColumns(err)
}

// reportRejected notifies clinicians of a reading that was rejected for implausible values.
func (h *hooks) reportRejected(e *core.RecordEvent) error {
	refusal := e.Next()
	if refusal == nil || h.ReportImplausible == nil {
		return refusal
	}
	if err := h.ReportImplausible(e.App, e.Record, writerOf(e.Record), h.Clock()); err != nil {
		return err
	}
	return refusal
}

// refuseChange keeps a stored reading unchanged, because it is evidence.
func (h *hooks) refuseChange(*core.RecordEvent) error {
	return validation.Errors{"measured_at": validation.NewError("fixed", ingest.ErrImmutable.Error())}
}

// asColumns converts a fault into errors by column, which the dashboard shows at the inputs.
func asColumns(err error) error {
	refused, isFault := errors.AsType[*fault.Error](err)
	if !isFault || refused.Kind == fault.Internal {
		return err
	}
	if len(refused.Fields) == 0 {
		return validation.Errors{"patient": validation.NewError(refused.Code, refused.Detail)}
	}
	columns := validation.Errors{}
	for field, messages := range refused.Fields {
		if field == "patient_id" {
			field = "patient"
		}
		columns[field] = validation.NewError(refused.Code, messages[0])
	}
	return columns
}

// guardAssignment keeps a device from having two patients at once, and recounts the billing days of the patients.
func (h *hooks) guardAssignment(e *core.RecordEvent) error {
	if err := devices.GuardAssignment(e.App, e.Record); err != nil {
		return err
	}
	before := collections.AsDeviceAssignment(e.Record.Original()).PatientID()
	if err := ingest.SaveAssignment(e.App, e.Record, h.Zone, e.Next); err != nil {
		return err
	}
	for _, patient := range slices.Compact([]string{before, collections.PatientOf(e.Record)}) {
		if patient == "" {
			continue // not assigned before
		}
		if err := h.recheck(e, patient, time.Time{}); err != nil {
			return err
		}
	}
	return nil
}
