package devices

import (
	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// GuardAssignment checks an assignment that is about to be stored, whoever writes it: it ends after it begins, and nobody else
// has the device meanwhile. Which patient a past reading belongs to depends on it.
func GuardAssignment(app core.App, record *core.Record) error {
	assignment := collections.AsDeviceAssignment(record)
	from, to := assignment.From(), assignment.To()
	if from.IsZero() {
		return validation.Errors{"assigned_at": validation.NewError("validation_required", "This field is required.")}
	}
	if !to.IsZero() && !to.After(from) {
		return validation.Errors{"unassigned_at": validation.NewError("validation_invalid_value", "Must be after assigned_at.")}
	}
	history, err := collections.AssignmentsOf(app, assignment.DeviceID())
	if err != nil {
		return err
	}
	for _, other := range history {
		if other.Id != record.Id && other.Overlaps(from, to) {
			return validation.Errors{"assigned_at": validation.NewError("validation_overlap", "The device was assigned at that time already.")}
		}
	}
	return nil
}
