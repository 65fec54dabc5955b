package collections

import (
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// FindTransmission finds one transmission by its number, TXN-<year>-<number>.
func FindTransmission(app core.App, id string) (*core.Record, error) {
	record, err := app.FindRecordById(Transmissions, id)
	if err != nil {
		return nil, fmt.Errorf("find transmission: %w", err)
	}
	return record, nil
}

// SetFHIRStatus moves an observation to a FHIR status. emrID is kept when there is one and does not clear an older one.
func SetFHIRStatus(tx core.App, observationID, status, emrID, at string) error {
	_, err := tx.NonconcurrentDB().NewQuery(`UPDATE observations SET fhir_status = {:status}, updated_at = {:at},
			emr_resource_id = CASE WHEN {:emr} = '' THEN emr_resource_id ELSE {:emr} END WHERE id = {:id}`).
		Bind(dbx.Params{"id": observationID, "status": status, "emr": emrID, "at": at}).Execute()
	if err != nil {
		return fmt.Errorf("set FHIR status: %w", err)
	}
	return nil
}
