package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// isStillSuperseded reports whether a newer reading of each of an alert's groups is stored. An alert without groups stays superseded.
func isStillSuperseded(tx core.App, alert *collections.Alert, now time.Time) (bool, error) {
	groups, err := alertGroups(tx, alert, now)
	if err != nil || len(groups) == 0 {
		return true, err
	}
	return HasNewerReadings(tx, alert.PatientID(), groups, alert.MeasuredAt(), vitals.Origin(alert.Origin()))
}

// alertGroups returns the parameter groups of a reading's alert: that of its type, or those of its alarming implausible values.
func alertGroups(tx core.App, alert *collections.Alert, now time.Time) (groups [][]*vitals.Parameter, err error) {
	types := []string{alert.Type()}
	if alert.Type() == alerts.TypeImplausibleReading {
		snapshot, err := triage.ReadSnapshot(tx, alert.PatientID(), nil, now)
		if err != nil {
			return nil, err
		}
		if types, err = snapshot.Thresholds.AlarmingTypes(alert.ReportedValues().Reveal(), alert.Parameter()); err != nil {
			return nil, err
		}
	}
	for _, alertType := range types {
		for _, definition := range vitals.Definitions {
			i := slices.IndexFunc(definition.Groups, func(group []*vitals.Parameter) bool { return group[0].Group == alertType })
			if i >= 0 {
				groups = append(groups, definition.Groups[i])
				break
			}
		}
	}
	return groups, nil
}

// reopenAlert reopens an alert and announces it, because its resolution was announced too.
func reopenAlert(tx core.App, alert *collections.Alert, normal int, now time.Time) error {
	if err := alerts.Reopen(tx, alert, normal, now); err != nil || alert.Snoozed() {
		return err
	}
	label, err := collections.PatientLabel(tx, alert.PatientID())
	if err != nil {
		return err
	}
	key := alerts.AnnouncementKey(alert.Id) + " reopened " + collections.Instant(now)
	return notifications.Announce(tx, alerts.Reannouncement(alert, label, key), now)
}

// ReopenSuperseded checks the patient's late readings stored since a time that were evaluated against newer ones of their batch: if none
// of those was stored, the alert reopens.
func (e *ReadingStore) ReopenSuperseded(app core.App, patientID string, since, now time.Time) error {
	return triage.UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		ended, err := collections.SupersededAlerts(tx, patientID, since)
		if err != nil {
			return "", err
		}
		for _, alert := range ended {
			superseded, err := isStillSuperseded(tx, alert, now)
			if err == nil && !superseded {
				err = reopenAlert(tx, alert, 0, now)
			}
			if err != nil {
				return "", err
			}
		}
		return patientID, nil
	})
}
