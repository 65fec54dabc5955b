package triage

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
)

// OpenBySystem opens an escalation of a priority by the system, inside the caller's transaction, and names it in the alert
// that raised it. A patient has one such escalation at a time: where one is open already the alert joins it, and opened is
// false.
func OpenBySystem(tx core.App, alertID string, priority Priority, e StatEscalation, now time.Time) (id string, opened bool, err error) {
	err = tx.DB().NewQuery(`SELECT id FROM escalations
		WHERE patient = {:patient} AND created_by = 'system' AND status IN ('open', 'in_progress')`).
		Bind(dbx.Params{"patient": e.PatientID}).Row(&id)
	if collections.Missing(err) {
		if id, err = collections.NextID(tx, collections.Escalations); err == nil {
			opened, err = true, store(tx, id, alertID, priority, e, now)
		}
	}
	if err != nil {
		return "", false, fmt.Errorf("open escalation by %s: %w", alerts.System, err)
	}
	_, err = tx.DB().Update(collections.Alerts, dbx.Params{"escalation": id}, dbx.HashExp{"id": alertID}).Execute()
	if err != nil {
		return "", false, fmt.Errorf("name escalation in its alert: %w", err)
	}
	return id, opened, nil
}
