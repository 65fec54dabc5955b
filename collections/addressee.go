package collections

import (
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Addressee is what says whose an event is: who held its device at its time, who holds it now, and whom it names; "" and nobody when
// there is no one.
type Addressee struct {
	Holder, Now string
	Named       ReceivingPatient
}

// addressee asks for all of it at once: to begin to read costs more than to find a row. Each search has an index: an event must not cost
// more in a larger practice.
var addressee = `SELECT
	COALESCE((` + DeviceHolderQuery("{:device}", "{:at}") + `), ''),
	COALESCE((SELECT patient FROM device_assignments WHERE device_id = {:device} AND unassigned_at = ''), ''),
	COALESCE(named.id, ''), COALESCE(named.active, FALSE), COALESCE(named.deleted_at, '')
FROM (SELECT 1) LEFT JOIN (
	SELECT 1 AS preference, id, active, deleted_at FROM patients WHERE gateway_patient_id = {:value} AND gateway_patient_id != ''
	UNION ALL SELECT 2, id, active, deleted_at FROM patients WHERE id = {:id}
	UNION ALL SELECT 3, id, active, deleted_at FROM patients WHERE mrn = {:value} COLLATE NOCASE AND {:value} != ''
) AS named ORDER BY named.preference LIMIT 1`

// FindAddressee looks for whom an identifier names, which may be the gateway's own, then our id, then the MRN, and for who has the device.
func FindAddressee(app core.App, deviceID, identifier string, at time.Time) (a Addressee, err error) {
	err = app.DB().NewQuery(addressee).Bind(dbx.Params{
		"device": deviceID, "at": Instant(at), "value": identifier, "id": strings.ToLower(identifier),
	}).Row(&a.Holder, &a.Now, &a.Named.ID, &a.Named.Active, &a.Named.DeletedAt)
	return a, wrap(err, "find whose an event is")
}
