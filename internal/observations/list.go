package observations

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// List returns a page of observations and how many there are in all.
func List(app core.App, f collections.ObservationFilter, offset, limit int) (page []Observation, total int, err error) {
	records, total, err := collections.PageOfObservations(app, f, offset, limit)
	for _, record := range records {
		page = append(page, FromRecord(record))
	}
	return page, total, err
}

// Find returns one observation, or a not-found fault.
func Find(app core.App, id string) (Observation, error) {
	record, err := collections.FindObservation(app, id)
	if err != nil {
		return Observation{}, fault.OrMissing(err)
	}
	return FromRecord(record), nil
}

// LoadFHIR reads what an observation's FHIR form is made from.
func LoadFHIR(app core.App, id string) (fhir.Stored, error) {
	o, err := Find(app, id)
	return o.FHIR(), err
}
