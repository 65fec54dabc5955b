package ingest

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// ListObservations returns a page of observations and how many there are in all.
func ListObservations(app core.App, f collections.ObservationFilter, offset, limit int) (page []Observation, total int, err error) {
	records, total, err := collections.PageOfObservations(app, f, offset, limit)
	for _, record := range records {
		page = append(page, ObservationFromRecord(record))
	}
	return page, total, err
}

// FindObservation returns one observation, or a not-found fault.
func FindObservation(app core.App, id string) (Observation, error) {
	record, err := collections.FindObservation(app, id)
	if err != nil {
		return Observation{}, fault.OrMissing(err)
	}
	return ObservationFromRecord(record), nil
}

// LoadFHIR reads what an observation's FHIR form is made from: the reading, the patient's time zone and, where it is wanted, what is
// known of the device.
func (e *Evaluator) LoadFHIR(app core.App, id string) (fhir.Stored, error) {
	o, err := FindObservation(app, id)
	if err != nil {
		return fhir.Stored{}, err
	}
	stored, deviceID := o.FHIR(), ""
	if e.rules.SendDevice {
		deviceID = o.Reading.DeviceID
	}
	from, err := collections.OriginsOf(app, o.PatientID, deviceID)
	if err != nil {
		return fhir.Stored{}, err
	}
	stored.ExternalID = from.ExternalID
	stored.Zone = collections.Zone(from.TimeZone, e.rules.PracticeZone)
	if deviceID != "" { // of one that nobody registered its id and kind are all that is known
		stored.Device = &fhir.Device{Manufacturer: from.Manufacturer, Model: from.Model, SerialNumber: from.SerialNumber, UDI: from.UDI}
	}
	return stored, nil
}
