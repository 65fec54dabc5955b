package escalations

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

// RetractAlerts updates the escalations of retracted alerts in the caller's transaction. One that the service opened is canceled if no
// alert remains, and its recipients see that in the app; otherwise it is about the remaining alerts.
// Source: docs/decisions/observations.md, "Retracting a reading" and "Implausible values".
func RetractAlerts(tx core.App, retracted []*collections.Alert, why string, by audit.Actor, now time.Time) error {
	var seen []string
	for _, alert := range retracted {
		id := alert.EscalationID()
		if id == "" || slices.Contains(seen, id) {
			continue
		}
		seen = append(seen, id)
		e, err := collections.FindEscalation(tx, id)
		if collections.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := retractFrom(tx, e, why, by, now); err != nil {
			return err
		}
	}
	return nil
}

func retractFrom(tx core.App, e *collections.Escalation, why string, by audit.Actor, now time.Time) error {
	if Status(e.Status()).IsClosed() || !e.BySystem() {
		return nil
	}
	remaining, err := collections.UnretractedAlertsOf(tx, e.Id, e.AlertID())
	if err != nil {
		return err
	}
	if len(remaining) > 0 {
		return continueAbout(tx, e, remaining, now)
	}
	change := Change{Status: new(StatusCancelled), ResolutionNotes: new(phi.Text("The " + why + "."))}
	if _, _, err := Update(tx, e.Number(), change, by, now); err != nil {
		return err
	}
	label, err := collections.PatientLabel(tx, e.PatientID())
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EscalationWithdrawn, Severity: "info", PatientID: e.PatientID(), EscalationID: e.Id,
		Body: label + ": the escalation was canceled, because the " + why + ".", Key: "escalation " + e.Id + " withdrawn",
	}, now)
}

// continueAbout makes an escalation about its remaining alerts. Without a critical one it is no longer stat.
func continueAbout(tx core.App, e *collections.Escalation, remaining []*collections.Alert, now time.Time) error {
	about, priority, critical := remaining[0], Priority(e.Priority()), false
	for _, alert := range remaining {
		if alert.Id == e.AlertID() {
			about = alert
		}
		critical = critical || alert.Level() == string(alerts.Critical)
	}
	if priority == Stat && !critical {
		priority = Urgent
	}
	if about.Id == e.AlertID() && string(priority) == e.Priority() {
		return nil
	}
	if err := e.ApplyRetraction(tx, about, string(priority), now); err != nil {
		return err
	}
	return auditEscalation(tx, audit.EscalationUpdate, e.Id, e.PatientID(), audit.System(), nil, now)
}
