package triage

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
)

// RetractFromSnoozes removes a patient's retracted alerts from the baselines of snoozes. A snooze ends if its baseline becomes empty, or if
// an alert that it suppressed exceeds what remains; open alerts are then notified as at every end. The caller rescores the patient.
// Source: docs/decisions/alerts.md, "Breaking through a snooze".
func RetractFromSnoozes(tx core.App, patientID string, retracted []*collections.Alert, by audit.Actor, now time.Time) error {
	var seen []string
	for _, alert := range retracted {
		if slices.Contains(seen, alert.Type()) {
			continue
		}
		seen = append(seen, alert.Type())
		snooze, err := collections.CurrentSnooze(tx, patientID, alert.Type())
		if err != nil {
			return err
		}
		if snooze == nil || !snooze.InForce(now) {
			continue
		}
		remaining, changed, err := alerts.RetractFromBaseline(tx, snooze, retracted)
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		ends := len(remaining) == 0
		if !ends {
			if ends, err = exceededBaseline(tx, snooze, remaining, now); err != nil {
				return err
			}
		}
		if !ends {
			continue
		}
		if err := alerts.EndSnoozeNow(tx, snooze, by, now); err != nil {
			return err
		}
		if _, err := notifyAfterSnooze(tx, snooze, now, now); err != nil {
			return err
		}
	}
	return nil
}

// exceededBaseline reports whether an alert that the snooze suppressed exceeds its reduced baseline.
func exceededBaseline(tx core.App, snooze *collections.Snooze, found []alerts.WorstValue, now time.Time) (bool, error) {
	quiet, err := collections.SnoozedCriticalAlerts(tx, snooze.PatientID(), snooze.Type(), snooze.CreatedAt())
	if err != nil || len(quiet) == 0 {
		return false, err
	}
	snapshot, err := ReadSnapshot(tx, snooze.PatientID(), nil, now)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(snapshot.Open, func(o alerts.Open) bool {
		return slices.Contains(quiet, o.ID) && o.Exceeds(found, snapshot.Thresholds)
	}), nil
}
