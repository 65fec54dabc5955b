package fhir

import (
	"strconv"

	"github.com/vigilhealth/vigil/internal/validate"
)

// LinkedObservation returns the form that the FHIR API serves, which refers to resources of the same API. It does not contain the device or the
// patient's name. deviceID is the id of the Device; "" if unknown.
// Source: docs/decisions/fhir.md, "Resources of the FHIR interface".
func LinkedObservation(s StoredObservation, deviceID string) Resource {
	s.Device = nil
	o, err := buildObservation(s)
	if err != nil {
		return Resource{err: err}
	}
	o.setServedMeta(s)
	o.setSubject(reference{Reference: "Patient/" + s.PatientID})
	if o.Device != nil && s.isDeviceMeasured() && deviceID != "" {
		o.Device.Reference = "Device/" + deviceID
	}
	return Resource{content: o}
}

// setServedMeta sets Vigil's id, version and time of change.
func (o *observation) setServedMeta(s StoredObservation) {
	o.ID = s.ID
	o.Meta.VersionID = strconv.Itoa(s.version())
	o.Meta.LastUpdated = validate.FormatInstant(s.UpdatedAt)
}

// version returns the version that a reader sees: 0 while the reading is suspect, then its transforms from 1. A reading that was retracted before its
// first transform has version 2.
func (s StoredObservation) version() int {
	switch {
	case s.Suspect && !s.EnteredInError:
		return 0
	case s.EnteredInError && s.Version == 0:
		return 2
	}
	return max(s.Version, 1)
}
