package escalations

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
)

// Rest makes an escalation one about what is left of its alerts after a reading was withdrawn, in the caller's transaction. It is stat
// no longer when no critical reading is left.
func Rest(tx core.App, e *collections.Escalation, left []*collections.Alert, now time.Time) error {
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
