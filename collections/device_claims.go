package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// DeviceClaim is an identifier of a device, a hub or a gateway's patient that belongs to the practice, and a span in which it did. The span is
// zero for a device that was never assigned; an open end is zero.
type DeviceClaim struct {
	Kind, Identifier string // Kind: device, hub or patient
	From, To         time.Time
}

// DeviceClaims returns the practice's claims. A device that only sent events, without being registered or assigned, is no claim.
func DeviceClaims(app core.App) ([]DeviceClaim, error) {
	var rows []struct {
		Kind       string `db:"kind"`
		Identifier string `db:"identifier"`
		From       string `db:"since"`
		To         string `db:"until"`
	}
	err := app.DB().NewQuery(`SELECT 'device' AS kind, device_id AS identifier, assigned_at AS since, unassigned_at AS until FROM device_assignments
		UNION ALL SELECT 'device', device_id, '', '' FROM devices WHERE status != 'discovered'
		UNION ALL SELECT 'hub', d.hub_id, a.assigned_at, a.unassigned_at FROM devices d JOIN device_assignments a ON a.device_id = d.device_id WHERE d.hub_id != ''
		UNION ALL SELECT 'patient', gateway_patient_id, created_at, CASE WHEN active THEN deleted_at ELSE MAX(archived_at, deleted_at) END
			FROM patients WHERE gateway_patient_id != ''`).All(&rows)
	if err != nil {
		return nil, wrap(err, "read the practice's device claims")
	}
	claims := make([]DeviceClaim, len(rows))
	for i, row := range rows {
		claims[i] = DeviceClaim{row.Kind, row.Identifier, ParseInstant(row.From), ParseInstant(row.To)}
	}
	return claims, nil
}

// DeviceClaimsChanged reports whether a device or patient may have changed after a position in the change feed, and the newest position.
func DeviceClaimsChanged(app core.App, after int64) (newest int64, changed bool, err error) {
	err = app.DB().NewQuery(`SELECT (SELECT COALESCE(MAX(seq), 0) FROM changes),
		EXISTS (SELECT 1 FROM changes WHERE seq > {:after} AND type IN ('device', 'patient'))`).Bind(dbx.Params{"after": after}).Row(&newest, &changed)
	return newest, changed, wrap(err, "look for changed device claims")
}
