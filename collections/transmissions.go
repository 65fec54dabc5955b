package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// FindTransmission finds one transmission by its number, TXN-<year>-<number>.
func FindTransmission(app core.App, id string) (*core.Record, error) {
	record, err := app.FindRecordById(Transmissions, id)
	return record, wrap(err, "find transmission")
}

// SetFHIRStatus moves an observation to a FHIR status. emrID is kept when there is one and does not clear an older one.
func SetFHIRStatus(tx core.App, observationID, status, emrID, at string) error {
	return exec(tx, "set FHIR status", `UPDATE observations SET fhir_status = {:status}, updated_at = {:at},
			emr_resource_id = CASE WHEN {:emr} = '' THEN emr_resource_id ELSE {:emr} END WHERE id = {:id}`, dbx.Params{"id": observationID, "status": status, "emr": emrID, "at": at})
}
