package collections

import (
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// The values of an observation's status and FHIR status.
const (
	StatusFinal          = "final"
	StatusEnteredInError = "entered_in_error"

	FHIRPending     = "pending"
	FHIRProcessing  = "processing"
	FHIRTransmitted = "transmitted"
	FHIRFailed      = "failed"
)

// FindObservation finds one observation by id.
func FindObservation(app core.App, id string) (*core.Record, error) {
	record, err := app.FindRecordById(Observations, id)
	return record, wrap(err, "find observation")
}

// FindObservationByKey finds the observation that a reading key or a gateway key names; either may be "". When they name
// two, the reading key decides.
func FindObservationByKey(app core.App, readingKey, gatewayKey string) (*core.Record, error) {
	record := &core.Record{}
	err := app.RecordQuery(Observations).AndWhere(keyed("reading_key", readingKey)).One(record)
	if Missing(err) {
		err = app.RecordQuery(Observations).AndWhere(keyed("gateway_key", gatewayKey)).One(record)
	}
	if err != nil {
		return nil, wrap(err, "find observation by key")
	}
	return record, nil
}

// keyed repeats the condition of the partial index, without which SQLite would not use it.
func keyed(column, key string) dbx.Expression {
	if key == "" {
		return dbx.NewExp("FALSE")
	}
	return dbx.NewExp(fmt.Sprintf("(%s = {:%s} AND %s != '')", column, column, column), dbx.Params{column: key})
}
