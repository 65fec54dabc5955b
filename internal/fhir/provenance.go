package fhir

import (
	"time"

	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// ReadingOrigin holds the source of a reading.
type ReadingOrigin struct {
	ObservationID, PatientID string
	Source                   vitals.Origin
	// Device is the resource id of the measuring Device, and DeviceID its identifier; "" if unknown.
	Device, DeviceID string
	// Staff is the id of the Practitioner who entered the values; "" if unknown or hidden from the reader.
	Staff string
	// Verified: a person confirmed the values. Verifier is the id of the Practitioner; "" if unknown or hidden from the reader.
	Verified bool
	Verifier string
	// Machine is the name of the machine client that sent the reading.
	Machine string
	// Practice is the name of the organization for which staff and devices act.
	Practice  string
	CreatedAt time.Time
	UpdatedAt time.Time
}

type (
	provenanceAgent struct {
		Type       concept    `json:"type"`
		Who        reference  `json:"who"`
		OnBehalfOf *reference `json:"onBehalfOf,omitempty"`
	}
	provenance struct {
		ResourceType string            `json:"resourceType"`
		ID           string            `json:"id"`
		Meta         meta              `json:"meta"`
		Target       []reference       `json:"target"`
		Recorded     string            `json:"recorded"`
		Activity     *concept          `json:"activity,omitempty"`
		Agent        []provenanceAgent `json:"agent"`
	}
)

// The agent types. Source: FHIR R4, value set provenance-agent-type; US Core, provenance-participant-type.
var (
	author      = agentType("author", "Author")
	transmitter = concept{Coding: []coding{{"http://hl7.org/fhir/us/core/CodeSystem/us-core-provenance-participant-type", "transmitter", "Transmitter"}}}
	assembler   = agentType("assembler", "Assembler")
	verifier    = agentType("verifier", "Verifier")
)

func agentType(code, display string) concept {
	return concept{Coding: []coding{{"http://terminology.hl7.org/CodeSystem/provenance-participant-type", code, display}}}
}

// Provenance returns the source of a reading: the device, the person who entered it, or the import. It has the reading's id.
// Source: docs/decisions/fhir.md, "Provenance".
func Provenance(o ReadingOrigin) Resource {
	r := provenance{
		ResourceType: "Provenance", ID: o.ObservationID, Meta: meta{Profile: []string{profilePrefix + "us-core-provenance"}},
		Target: []reference{{Reference: "Observation/" + o.ObservationID}}, Recorded: validate.FormatInstant(o.CreatedAt),
	}
	practice := &reference{Type: "Organization", Display: o.Practice}
	if tag, known := reportedBy[o.Source]; known {
		r.Activity = &concept{Coding: []coding{tag}}
	}
	switch o.Source {
	case vitals.OriginStaff:
		r.Agent = []provenanceAgent{{author, o.staff(), practice}}
	case vitals.OriginPatient:
		r.Agent = []provenanceAgent{{author, reference{Reference: "Patient/" + o.PatientID}, nil}}
	case vitals.OriginImport:
		r.Agent = []provenanceAgent{{author, o.device(), practice}, {assembler, reference{Type: "Device", Display: "Import of a file"}, practice}}
	case vitals.OriginMachine:
		r.Agent = []provenanceAgent{{author, o.device(), practice}, {transmitter, o.machine(), practice}}
	default:
		r.Agent = []provenanceAgent{{author, o.device(), practice}, {transmitter, reference{Type: "Device", Display: "Device gateway"}, practice}}
	}
	if o.Verified {
		r.Agent = append(r.Agent, provenanceAgent{verifier, staffReference(o.Verifier), practice})
	}
	return withVersion(&r, &r.Meta, o.UpdatedAt)
}

func (o ReadingOrigin) staff() reference { return staffReference(o.Staff) }

func staffReference(id string) reference {
	if id == "" {
		return reference{Type: "Practitioner", Display: "Staff"}
	}
	return reference{Reference: "Practitioner/" + id}
}

func (o ReadingOrigin) machine() reference {
	if o.Machine == "" {
		return reference{Type: "Device", Display: "Client"}
	}
	return reference{Type: "Device", Display: o.Machine}
}

func (o ReadingOrigin) device() reference {
	switch {
	case o.Device != "":
		return reference{Reference: "Device/" + o.Device}
	case o.DeviceID != "":
		return reference{Type: "Device", Identifier: &identifier{deviceSystem, o.DeviceID}, Display: o.DeviceID}
	}
	return reference{Type: "Device", Display: "Device"}
}
