package alerts

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Ended is an alert that is over, and whose it was.
type Ended struct {
	ID        string `db:"id"`
	PatientID string `db:"patient"`
}

// AutoResolveAbout resolves the active alerts of a type about a device or hub as the system, inside the caller's transaction;
// about one patient only unless patientID is "".
func AutoResolveAbout(tx core.App, deviceID, alertType, patientID string, now time.Time) (ended []Ended, err error) {
	err = tx.NonconcurrentDB().NewQuery(`UPDATE alerts SET status = {:over}, acknowledged = TRUE, acknowledged_by = {:system}, acknowledged_at = {:at},
			resolved_by = {:system}, resolved_at = {:at}, updated_at = {:at}
		WHERE device_id = {:device} AND device_id != '' AND type = {:type} AND status = {:active} AND {:patient} IN ('', patient)
		RETURNING id, patient`).
		Bind(dbx.Params{
			"over": string(StatusAutoResolved), "active": string(StatusActive), "system": System, "at": collections.Instant(now),
			"device": deviceID, "type": alertType, "patient": patientID,
		}).All(&ended)
	if err != nil {
		return nil, fmt.Errorf("resolve alerts about a device: %w", err)
	}
	return ended, nil
}
