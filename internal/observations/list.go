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

// LoadFHIR reads what an observation's FHIR form is made from: the reading, the patient's time zone and, where it is wanted, what is
// known of the device.
func (e *Engine) LoadFHIR(app core.App, id string) (fhir.Stored, error) {
	o, err := Find(app, id)
	if err != nil {
		return fhir.Stored{}, err
	}
	stored := o.FHIR()
	if stored.Zone, err = collections.ZoneOfPatient(app, o.PatientID, e.rules.PracticeZone); err != nil && !collections.Missing(err) {
		return fhir.Stored{}, err
	}
	if !e.rules.SendDevice || o.Reading.DeviceID == "" {
		return stored, nil
	}
	stored.Device = &fhir.Device{}
	device, err := collections.FindDevice(app, o.Reading.DeviceID)
	if collections.Missing(err) {
		return stored, nil // nobody registered it: its id and kind are all that is known
	}
	if err != nil {
		return fhir.Stored{}, err
	}
	stored.Device = &fhir.Device{
		Manufacturer: device.Manufacturer(), Model: device.Model(), SerialNumber: device.SerialNumber(), UDI: device.UDI(),
	}
	return stored, nil
}
