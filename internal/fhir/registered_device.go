package fhir

import (
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// RegisteredDevice holds the fields of a registered device from which a Device resource is built.
type RegisteredDevice struct {
	Device

	ID       string // resource id
	DeviceID string
	Kind     vitals.Kind // "" if unknown
	Firmware string
	// InUse: the device is assigned to a patient.
	InUse     bool
	PatientID string // the assigned patient; "" for none
	UpdatedAt time.Time
}

// DeviceResource returns a registered device as a Device.
func DeviceResource(r RegisteredDevice) Resource {
	d := r.resource(r.DeviceID, r.Kind)
	d.ID, d.Meta, d.Status = r.ID, &meta{}, "inactive"
	if r.InUse {
		d.Status = "active"
	}
	if r.Firmware != "" {
		d.Version = []version{{r.Firmware}}
	}
	if r.PatientID != "" {
		d.Patient = &reference{Reference: "Patient/" + r.PatientID}
	}
	return withVersion(&d, r.UpdatedAt)
}

func (d *device) metaField() *meta { return d.Meta }
