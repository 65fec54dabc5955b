package fhir

import (
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Device holds the registered data of a measuring device without its identifier; "" is unknown.
type Device struct{ Manufacturer, Model, SerialNumber, UDI string }

// The FHIR device, contained in an observation or served separately, with members in the order of the R4 definition.
type (
	deviceName struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	udiCarrier struct {
		DeviceIdentifier string `json:"deviceIdentifier,omitempty"`
		Issuer           string `json:"issuer,omitempty"`
		CarrierHRF       string `json:"carrierHRF"`
	}
	device struct {
		ResourceType string       `json:"resourceType"`
		ID           string       `json:"id"`
		Meta         *meta        `json:"meta,omitempty"`
		Identifier   []identifier `json:"identifier"`
		UDICarrier   []udiCarrier `json:"udiCarrier,omitempty"`
		Status       string       `json:"status,omitempty"`
		Manufacturer string       `json:"manufacturer,omitempty"`
		SerialNumber string       `json:"serialNumber,omitempty"`
		DeviceName   []deviceName `json:"deviceName,omitempty"`
		ModelNumber  string       `json:"modelNumber,omitempty"`
		Type         *concept     `json:"type,omitempty"`
		Version      []version    `json:"version,omitempty"`
		Patient      *reference   `json:"patient,omitempty"`
	}
	version struct {
		Value string `json:"value"`
	}
)

const (
	snomedSystem = "http://snomed.info/sct"
	gs1Issuer    = "http://hl7.org/fhir/NamingSystem/gs1-di"
	containedID  = "device"
)

// isDeviceMeasured reports whether a device sent the values, as opposed to a person who entered them.
func (s StoredObservation) isDeviceMeasured() bool {
	return s.Origin != vitals.OriginStaff && s.Origin != vitals.OriginPatient
}

// device returns the measuring device as a reference and a contained resource. For values that a person entered, only the device's name is
// included, because Vigil cannot verify which device was used. Source: docs/decisions/fhir.md, "The device".
func (s StoredObservation) device() (*reference, []device) {
	id := s.Reading.DeviceID
	switch {
	case id == "":
		return nil, nil
	case !s.isDeviceMeasured():
		return &reference{Display: id}, nil
	case s.Device == nil:
		return &reference{Identifier: &identifier{deviceSystem, id}, Display: id}, nil
	}
	d := s.Device.resource(id, s.Reading.Kind)
	d.ID = containedID
	return &reference{Reference: "#" + containedID, Identifier: &identifier{deviceSystem, id}, Display: id}, []device{d}
}

// resource returns a registered device as a FHIR Device. The kind of reading determines its type.
func (known Device) resource(id string, kind vitals.Kind) device {
	d := device{
		ResourceType: "Device", Identifier: []identifier{{deviceSystem, id}},
		Manufacturer: known.Manufacturer, SerialNumber: known.SerialNumber, ModelNumber: known.Model,
	}
	if known.UDI != "" {
		d.UDICarrier = []udiCarrier{parseUDI(known.UDI)}
	}
	if known.Model != "" {
		d.DeviceName = []deviceName{{Name: known.Model, Type: "model-name"}}
	}
	if code := kind.Definition().FHIR.Device; code.Code != "" {
		d.Type = &concept{Coding: []coding{{snomedSystem, code.Code, code.Display}}}
	}
	return d
}

// parseUDI returns a UDI in human-readable form. In a GS1 UDI, the device identifier is the 14 digits after application identifier 01.
// Source: FDA, UDI formats by accredited issuing agency (2017); FHIR R4, Device.udiCarrier.
func parseUDI(udi string) udiCarrier {
	c := udiCarrier{CarrierHRF: udi}
	const length = 14
	rest, isGS1 := strings.CutPrefix(udi, "(01)")
	if isGS1 && len(rest) >= length && strings.Trim(rest[:length], "0123456789") == "" {
		c.DeviceIdentifier, c.Issuer = rest[:length], gs1Issuer
	}
	return c
}

// reportedBy is the HL7 code for who reported the values of a reading: a device, staff or the patient.
// Source: docs/decisions/fhir.md, "Typed and measured"; HL7 v3 ObservationValue, SecurityIntegrityProvenanceReportedBy.
var reportedBy = map[vitals.Origin]coding{
	vitals.OriginDevice:  {observationValueSystem, "DEVRPT", "device reported"},
	vitals.OriginMachine: {observationValueSystem, "DEVRPT", "device reported"},
	vitals.OriginImport:  {observationValueSystem, "DEVRPT", "device reported"},
	vitals.OriginStaff:   {observationValueSystem, "HCPRPT", "healthcare professional reported"},
	vitals.OriginPatient: {observationValueSystem, "PATRPT", "patient reported"},
}

const observationValueSystem = "http://terminology.hl7.org/CodeSystem/v3-ObservationValue"

// setReporter sets the tag for who reported the values, and whether staff entered them.
func (o *observation) setReporter(s StoredObservation) {
	if tag, known := reportedBy[s.Origin]; known {
		o.Meta.Tag = []coding{tag}
	}
	o.byStaff = s.Origin == vitals.OriginStaff
}

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
	return withVersion(&d, d.Meta, r.UpdatedAt)
}
