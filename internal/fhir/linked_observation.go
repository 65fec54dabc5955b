package fhir

import (
	"strconv"

	"github.com/vigilhealth/vigil/internal/validate"
)

// Linked is the form that the FHIR interface serves: what it refers to is served there, too. The device is its own resource and not contained, and
// the patient's name stands in the patient alone. deviceID is the id of the Device; "" where none is known.
// Source: docs/decisions/fhir.md, "Resources of the FHIR interface".
func Linked(s Stored, deviceID string) Resource {
	s.Device = nil
	o, err := build(s)
	if err != nil {
		return Resource{err: err}
	}
	o.serve(s)
	o.about(reference{Reference: "Patient/" + s.PatientID})
	if o.Device != nil && s.measured() && deviceID != "" {
		o.Device.Reference = "Device/" + deviceID
	}
	return Resource{content: o}
}

// serve writes what we say of our own copy.
func (o *observation) serve(s Stored) {
	o.ID = s.ID
	o.Meta.VersionID = strconv.Itoa(s.version())
	o.Meta.LastUpdated = validate.FormatInstant(s.UpdatedAt)
}

// version counts what a reader can see: the forms of the reading from 1, and before them the one that nobody has confirmed. A reading that never had a
// form to deliver was one before it was withdrawn.
func (s Stored) version() int {
	switch {
	case s.Suspect && !s.EnteredInError:
		return 0
	case s.EnteredInError && s.Version == 0:
		return 2
	}
	return max(s.Version, 1)
}
