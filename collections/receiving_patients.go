package collections

import (
	"fmt"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ReceivingPatient is a patient as far as placing a reading is concerned. The zero value is nobody.
type ReceivingPatient struct {
	ID        string `db:"id"`
	Active    bool   `db:"active"`
	DeletedAt string `db:"deleted_at"`
}

// byIdentifier is three searches with an index each: an event must not cost more in a larger practice.
const byIdentifier = `SELECT id, active, deleted_at FROM (
	SELECT 1 AS preference, id, active, deleted_at FROM patients WHERE gateway_patient_id = {:value} AND gateway_patient_id != ''
	UNION ALL SELECT 2, id, active, deleted_at FROM patients WHERE id = {:id}
	UNION ALL SELECT 3, id, active, deleted_at FROM patients WHERE mrn = {:value} COLLATE NOCASE
) ORDER BY preference LIMIT 1`

// FindNamedPatient looks for the gateway's own identifier first, then for our id and for the MRN.
func FindNamedPatient(app core.App, identifier string) (ReceivingPatient, error) {
	if identifier == "" {
		return ReceivingPatient{}, nil
	}
	return findReceiving(app, byIdentifier, dbx.Params{"value": identifier, "id": strings.ToLower(identifier)})
}

// FindReceivingPatient finds a patient by id.
func FindReceivingPatient(app core.App, id string) (ReceivingPatient, error) {
	return findReceiving(app, `SELECT id, active, deleted_at FROM patients WHERE id = {:id}`, dbx.Params{"id": id})
}

func findReceiving(app core.App, search string, params dbx.Params) (patient ReceivingPatient, err error) {
	err = app.DB().NewQuery(search).Bind(params).One(&patient)
	if err != nil && !Missing(err) {
		return patient, fmt.Errorf("find patient of event: %w", err)
	}
	return patient, nil
}
