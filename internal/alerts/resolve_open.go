package alerts

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// ResolveOpen resolves every alert of a patient that is not over, as the system, inside the caller's transaction, and
// returns their record ids. Who acknowledged one stays on record.
func ResolveOpen(tx core.App, patientID string, now time.Time) (ids []string, err error) {
	err = tx.NonconcurrentDB().NewQuery(`UPDATE alerts SET status = {:resolved}, resolved_by = {:system}, resolved_at = {:at}, updated_at = {:at},
			acknowledged_by = CASE WHEN acknowledged THEN acknowledged_by ELSE {:system} END,
			acknowledged_at = CASE WHEN acknowledged THEN acknowledged_at ELSE {:at} END, acknowledged = TRUE
		WHERE patient = {:patient} AND status IN ({:active}, {:acknowledged}) RETURNING id`).
		Bind(dbx.Params{
			"patient": patientID, "system": System, "at": collections.Instant(now), "resolved": string(StatusResolved),
			"active": string(StatusActive), "acknowledged": string(StatusAcknowledged),
		}).Column(&ids)
	if err != nil {
		return nil, fmt.Errorf("resolve open alerts: %w", err)
	}
	return ids, nil
}
