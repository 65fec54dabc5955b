package alerts

import (
	"maps"
	"slices"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// dashboardReason is the reason in the change log for records edited in the dashboard, which has no field for one.
const dashboardReason = "Changed in the dashboard."

// GuardThresholds checks a thresholds record before it is saved, and logs the change after save, in the caller's transaction. Errors are
// [validation.Errors] by column.
func GuardThresholds(tx core.App, record *core.Record, by audit.Actor, now time.Time, save func() error) error {
	patientID := collections.PatientOf(record)
	if !record.IsNew() && collections.PatientOf(record.Original()) != patientID {
		return validation.Errors{"patient": validation.NewError("fixed", "Thresholds stay with their patient.")}
	}
	after, err := ParseBounds(record.GetString(collections.ThresholdsBounds))
	if err != nil {
		return validation.Errors{"bounds": validation.NewError("validation_invalid_value", `Must be groups of bounds, such as {"pulse":{"high":120}}.`)}
	}
	wrong := after.problemsOf(patientID, func(string) bool { return false })
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		return validation.Errors{"bounds": validation.NewError("validation_invalid_value", name+": "+wrong[name])}
	}
	before, err := loadStored(tx, patientID)
	if err != nil {
		return err
	}
	changed := !before.own.equal(after)
	if changed {
		record.Set(collections.ThresholdsUpdatedAt, collections.Instant(now))
		record.Set(collections.ThresholdsUpdatedBy, authorOf(by))
	}
	if err := save(); err != nil || !changed {
		return err
	}
	return logChange(tx, patientID, before, after, dashboardReason, by, now)
}

// DropThresholds logs the removal of a patient's own bounds; remove performs it. The practice's bounds cannot be removed.
func DropThresholds(tx core.App, record *core.Record, by audit.Actor, now time.Time, remove func() error) error {
	patientID := collections.PatientOf(record)
	if patientID == "" {
		return validation.Errors{"id": validation.NewError("kept", "The practice's thresholds cannot be deleted.")}
	}
	before, err := loadStored(tx, patientID)
	if err != nil {
		return err
	}
	if err := remove(); err != nil {
		return err
	}
	return logChange(tx, patientID, before, Bounds{}, dashboardReason, by, now)
}

// loadStored returns the stored bounds before a change. Own bounds that cannot be parsed count as none.
func loadStored(tx core.App, patientID string) (stored, error) {
	practice, own, err := collections.FindThresholds(tx, patientID)
	if err != nil {
		return stored{}, err
	}
	if _, err := ParseBounds(own.Bounds); err != nil {
		own.Bounds = ""
	}
	s, _, err := configured(patientID, practice, own)
	return s, err
}
