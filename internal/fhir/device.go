package fhir

import (
	"strings"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Device is what the register knows of a measuring device besides its identifier; what is "" is not known.
type Device struct{ Manufacturer, Model, SerialNumber, UDI string }

// The FHIR device as a resource inside an observation, members in the order of the R4 definition.
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

// measured reports whether a device vouches for the values, not a person who typed them.
func (s Stored) measured() bool {
	return s.Origin != vitals.OriginStaff && s.Origin != vitals.OriginPatient
}

// device says what measured. Of what a person typed only the words are kept: which device was used is theirs to say, and
// no claim of ours. Source: docs/decisions/fhir.md, "The device".
func (s Stored) device() (*reference, []device) {
	id := s.Reading.DeviceID
	switch {
	case id == "":
		return nil, nil
	case !s.measured():
		return &reference{Display: id}, nil
	case s.Device == nil:
		return &reference{Identifier: &identifier{deviceSystem, id}, Display: id}, nil
	}
	d := s.Device.of(id, s.Reading.Kind)
	d.ID = containedID
	return &reference{Reference: "#" + containedID, Identifier: &identifier{deviceSystem, id}, Display: id}, []device{d}
}

// of is what the register knows of a device with an id, which measures a kind.
func (known Device) of(id string, kind vitals.Kind) device {
	d := device{
		ResourceType: "Device", Identifier: []identifier{{deviceSystem, id}},
		Manufacturer: known.Manufacturer, SerialNumber: known.SerialNumber, ModelNumber: known.Model,
	}
	if known.UDI != "" {
		d.UDICarrier = []udiCarrier{carrierOf(known.UDI)}
	}
	if known.Model != "" {
		d.DeviceName = []deviceName{{Name: known.Model, Type: "model-name"}}
	}
	if code := kind.Definition().FHIR.Device; code.Code != "" {
		d.Type = &concept{Coding: []coding{{snomedSystem, code.Code, code.Display}}}
	}
	return d
}

// carrierOf is a UDI as people read it. The device identifier of a GS1 one follows its application identifier 01 with 14 digits.
// Source: FDA, UDI formats by accredited issuing agency (2017); FHIR R4, Device.udiCarrier.
func carrierOf(udi string) udiCarrier {
	c := udiCarrier{CarrierHRF: udi}
	const length = 14
	rest, isGS1 := strings.CutPrefix(udi, "(01)")
	if isGS1 && len(rest) >= length && strings.Trim(rest[:length], "0123456789") == "" {
		c.DeviceIdentifier, c.Issuer = rest[:length], gs1Issuer
	}
	return c
}

// reportedBy tells a typed reading from a measured one, in HL7's words for who reported data.
// Source: docs/decisions/fhir.md, "Typed and measured"; HL7 v3 ObservationValue, SecurityIntegrityProvenanceReportedBy.
var reportedBy = map[vitals.Origin]coding{
	vitals.OriginDevice:  {observationValueSystem, "DEVRPT", "device reported"},
	vitals.OriginMachine: {observationValueSystem, "DEVRPT", "device reported"},
	vitals.OriginImport:  {observationValueSystem, "DEVRPT", "device reported"},
	vitals.OriginStaff:   {observationValueSystem, "HCPRPT", "healthcare professional reported"},
	vitals.OriginPatient: {observationValueSystem, "PATRPT", "patient reported"},
}

const observationValueSystem = "http://terminology.hl7.org/CodeSystem/v3-ObservationValue"

// vouch writes who vouches for the values: the tag, and the patient as performer of what a portal user typed.
func (o *observation) vouch(s Stored) {
	if tag, known := reportedBy[s.Origin]; known {
		o.Meta.Tag = []coding{tag}
	}
	o.byPatient = s.Origin == vitals.OriginPatient
}
