package triage

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
)

// CancelOpen cancels every open escalation of a patient, as the system, inside the caller's transaction, and returns
// their record ids.
func CancelOpen(tx core.App, patientID string, now time.Time) (ids []string, err error) {
	err = tx.NonconcurrentDB().NewQuery(`UPDATE escalations SET status = 'cancelled', cancelled_by = {:system}, cancelled_at = {:at}, updated_at = {:at}
		WHERE patient = {:patient} AND status IN ('open', 'in_progress') RETURNING id`).
		Bind(dbx.Params{"patient": patientID, "system": alerts.System, "at": collections.Instant(now)}).Column(&ids)
	if err != nil {
		return nil, fmt.Errorf("cancel open escalations: %w", err)
	}
	return ids, nil
}
