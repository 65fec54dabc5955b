package triage

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/phi"
)

// EscalateCritical escalates a critical alert as its reading would have done without a snooze or a hold, see [escalations.JoinOrOpen].
func EscalateCritical(tx core.App, snapshot PatientSnapshot, alert *collections.Alert, renotify bool, now time.Time) error {
	return JoinOrOpenStat(tx, snapshot, escalations.Trigger{
		Draft: escalations.Draft{AlertID: alert.Id, Reason: phi.Text(alert.DisplayMessage())}, Renotify: renotify,
	}, now)
}

// JoinOrOpenStat joins or opens the stat escalation of a critical alert of the snapshot's patient, assigned to the active provider.
func JoinOrOpenStat(tx core.App, snapshot PatientSnapshot, t escalations.Trigger, now time.Time) (err error) {
	t.PatientID, t.Priority, t.Active = snapshot.PatientID, escalations.Stat, snapshot.Escalations
	if t.AssignedTo, err = collections.ActiveProviderEmail(tx, snapshot.PatientID); err != nil {
		return err
	}
	_, _, err = escalations.JoinOrOpen(tx, t, now)
	return err
}

// IsMonitored reports whether a patient is neither archived nor deleted.
func IsMonitored(app core.App, patientID string) (bool, error) {
	patient, err := collections.FindPatient(app, patientID)
	if collections.IsNotFound(err) {
		return false, nil
	}
	return err == nil && patient.Active(), err
}
