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

// TakeBack does for the escalations of alerts that were taken back what follows, inside the caller's transaction. One that the service
// opened and that no alert is left of is cancelled, and those responsible find that in the app; with others left it is about those.
// Source: docs/decisions/observations.md, "Retracting a reading" and "Implausible values".
func TakeBack(tx core.App, gone []*collections.Alert, why string, by audit.Actor, now time.Time) error {
	var seen []string
	for _, alert := range gone {
		id := alert.EscalationID()
		if id == "" || slices.Contains(seen, id) {
			continue
		}
		seen = append(seen, id)
		e, err := collections.FindEscalation(tx, id)
		if collections.Missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := takeBack(tx, e, why, by, now); err != nil {
			return err
		}
	}
	return nil
}

func takeBack(tx core.App, e *collections.Escalation, why string, by audit.Actor, now time.Time) error {
	if Status(e.Status()).Closed() || !e.BySystem() {
		return nil
	}
	left, err := collections.AlertsLeftOf(tx, e.Id, e.AlertID())
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return rest(tx, e, left, now)
	}
	change := Change{Status: new(StatusCancelled), Notes: new(phi.Text("The " + why + "."))}
	if _, _, err := Update(tx, e.Number(), change, by, now); err != nil {
		return err
	}
	whom, err := collections.PatientLabel(tx, e.PatientID())
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EscalationWithdrawn, Severity: "info", PatientID: e.PatientID(), EscalationID: e.Id,
		Body: whom + ": the escalation was taken back, since the " + why + ".", Key: "escalation " + e.Id + " withdrawn",
	}, now)
}

// rest makes an escalation one about what is left of its alerts. It is stat no longer when no critical one is left.
func rest(tx core.App, e *collections.Escalation, left []*collections.Alert, now time.Time) error {
	about, priority, critical := left[0], Priority(e.Priority()), false
	for _, alert := range left {
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
	if err := e.Rest(tx, about, string(priority), now); err != nil {
		return err
	}
	return note(tx, audit.EscalationUpdate, e.Id, e.PatientID(), audit.System(), nil, now)
}
