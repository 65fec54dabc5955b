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

// byHand is the reason in the change log of a record that somebody wrote in the dashboard, which asks for none.
const byHand = "Changed in the dashboard."

// GuardThresholds checks a record of thresholds that is about to be saved, and logs what it changes once save has saved
// it, all in the caller's transaction. What is wrong comes back as [validation.Errors] by column.
func GuardThresholds(tx core.App, record *core.Record, by audit.Actor, now time.Time, save func() error) error {
	patientID := collections.PatientOf(record)
	if !record.IsNew() && collections.PatientOf(record.Original()) != patientID {
		return validation.Errors{"patient": validation.NewError("fixed", "Thresholds stay with their patient.")}
	}
	after, err := ParseBounds(record.GetString(collections.ThresholdsBounds))
	if err != nil {
		return validation.Errors{"bounds": validation.NewError("validation_invalid_value", `Must be groups of bounds, such as {"pulse":{"high":120}}.`)}
	}
	wrong := after.complaintsOf(patientID, func(string) bool { return false })
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		return validation.Errors{"bounds": validation.NewError("validation_invalid_value", name+": "+wrong[name])}
	}
	before, err := before(tx, patientID)
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
	return logChange(tx, patientID, before, after, byHand, by, now)
}

// DropThresholds logs that a patient's own bounds are removed; remove removes them. The practice's stay.
func DropThresholds(tx core.App, record *core.Record, by audit.Actor, now time.Time, remove func() error) error {
	patientID := collections.PatientOf(record)
	if patientID == "" {
		return validation.Errors{"id": validation.NewError("kept", "The practice's thresholds cannot be deleted.")}
	}
	before, err := before(tx, patientID)
	if err != nil {
		return err
	}
	if err := remove(); err != nil {
		return err
	}
	return logChange(tx, patientID, before, Bounds{}, byHand, by, now)
}

// before is what is stored before a change. Own bounds that cannot be read are none.
func before(tx core.App, patientID string) (stored, error) {
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
