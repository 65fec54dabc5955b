package triage

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// SetThresholds changes the thresholds of a patient, see [alerts.SetThresholds], and ranks the patient anew, in one
// transaction. With an empty patientID it changes the practice's defaults; [RescoreAll] then catches up with everyone
// who inherits them. A patient who does not exist or is deleted is a not-found fault.
func SetThresholds(app core.App, patientID string, change alerts.Change, by audit.Actor, now time.Time) (alerts.Configuration, error) {
	var configuration alerts.Configuration
	err := app.RunInTransaction(func(tx core.App) error {
		if patientID != "" {
			if _, err := collections.FindPatient(tx, patientID); collections.Missing(err) {
				return fault.Missing()
			} else if err != nil {
				return err
			}
		}
		changed, err := false, error(nil)
		if configuration, changed, err = alerts.SetThresholds(tx, patientID, change, by, now); err != nil || !changed {
			return err
		}
		return rescoreAfterChange(tx, patientID, now)
	})
	return configuration, err
}

// KeepThresholds is [alerts.KeepThresholds], and ranks the patient anew.
func KeepThresholds(tx core.App, record *core.Record, by audit.Actor, now time.Time, save func() error) error {
	if err := alerts.KeepThresholds(tx, record, by, now, save); err != nil {
		return err
	}
	return rescoreAfterChange(tx, record.GetString("patient"), now)
}

// DropThresholds is [alerts.DropThresholds], and ranks the patient anew.
func DropThresholds(tx core.App, record *core.Record, by audit.Actor, now time.Time, remove func() error) error {
	if err := alerts.DropThresholds(tx, record, by, now, remove); err != nil {
		return err
	}
	return rescoreAfterChange(tx, record.GetString("patient"), now)
}

func rescoreAfterChange(tx core.App, patientID string, now time.Time) error {
	if patientID == "" {
		return nil
	}
	_, err := Rescore(tx, patientID, now)
	return err
}
