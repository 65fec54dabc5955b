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

// adoptObservation gives a reading created as a record the same checks and consequences as any other.
func (h *hooks) adoptObservation(e *core.RecordEvent) error {
	_, err := h.Observations.Adopt(e.App, e.Record, writerOf(e.Record), h.Clock(), e.Next)
	return asColumns(err)
}

// reportImplausible has people told of a reading that was refused for values that no device should report.
func (h *hooks) reportImplausible(e *core.RecordEvent) error {
	refusal := e.Next()
	if refusal == nil || h.Report == nil {
		return refusal
	}
	if err := h.Report(e.App, e.Record, writerOf(e.Record), h.Clock()); err != nil {
		return err
	}
	return refusal
}

// refuseChange: a reading is evidence.
func (h *hooks) refuseChange(*core.RecordEvent) error {
	return validation.Errors{"measured_at": validation.NewError("fixed", ingest.ErrFixed.Error())}
}

// asColumns turns a fault into complaints by column, which the dashboard shows beside the inputs.
func asColumns(err error) error {
	var refused *fault.Error
	if !errors.As(err, &refused) || refused.Kind == fault.Internal {
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

// guardAssignment keeps a device from being in two hands at once, and the days that count for billing in step with who held it.
func (h *hooks) guardAssignment(e *core.RecordEvent) error {
	if err := devices.GuardAssignment(e.App, e.Record); err != nil {
		return err
	}
	before := collections.AsDeviceAssignment(e.Record.Original()).PatientID()
	if err := ingest.FollowAssignment(e.App, e.Record, h.Zone, e.Next); err != nil {
		return err
	}
	for _, patient := range slices.Compact([]string{before, collections.PatientOf(e.Record)}) {
		if patient == "" {
			continue // nobody's before
		}
		if err := h.recheck(e, patient, time.Time{}); err != nil {
			return err
		}
	}
	return nil
}
