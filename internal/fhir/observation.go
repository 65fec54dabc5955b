package fhir

import (
	"fmt"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Stored is an observation as the service keeps it: all that its FHIR form depends on.
type Stored struct {
	ID        string // UUID of the observation
	PatientID string // our UUID of the patient
	// ExternalID is the EMR's id of the patient, "" where that was not looked up.
	ExternalID string
	Reading    vitals.Reading
	// Origin says who vouches for the values; "" is a device.
	Origin vitals.Origin
	// Zone is the patient's, nil for UTC.
	Zone *time.Location
	// Device is what the register knows of the device; nil where no Device resource is wanted.
	Device *Device
	// EMRID is the id of the EMR's copy when that is to be updated.
	EMRID string
	// EnteredInError says that staff withdrew the reading.
	EnteredInError bool
	// Suspect says that it may be somebody else's, and that nobody has said otherwise.
	Suspect bool
	// DeviceError says that a missing value is missing because the device reported an error.
	DeviceError bool
	// Version counts transforms from 1.
	Version              int
	CreatedAt, UpdatedAt time.Time
}

// Observation is the form this API serves: our patient id with the display name, our id and version.
// Source: docs/decisions/fhir.md, "Subject when served and when delivered" and "Identifier and issued".
func Observation(s Stored, display phi.Text) Resource {
	o, err := build(s)
	if err != nil {
		return Resource{err: err}
	}
	o.serve(s)
	o.about(reference{Reference: "Patient/" + s.PatientID, Display: display.Reveal()})
	return Resource{content: o}
}

// Delivered is the form sent to the EMR: the EMR's patient id (with or without a leading "Patient/"), no name, and
// neither id nor version, which the EMR assigns. The identifier still carries our id. An update carries the EMR's id.
// Source: docs/decisions/fhir.md, "Subject when served and when delivered".
func Delivered(s Stored, externalID string) Resource {
	o, err := build(s)
	if err != nil {
		return Resource{err: err}
	}
	o.sendTo(externalID, s)
	return Resource{content: o}
}

const (
	loincSystem  = "http://loinc.org"
	ucumSystem   = "http://unitsofmeasure.org"
	mdcSystem    = "urn:iso:std:iso:11073:10101"
	bitSystem    = "http://terminology.hl7.org/CodeSystem/ASN1ToHL7"
	absentSystem = "http://terminology.hl7.org/CodeSystem/data-absent-reason"
	deviceSystem = "urn:rpm:device"
	uuidSystem   = "urn:ietf:rfc:3986"

	profilePrefix = "http://hl7.org/fhir/us/core/StructureDefinition/"
)

func loinc(c vitals.Code) coding { return coding{loincSystem, c.Code, c.Display} }

func category(code, display string) concept {
	return concept{Coding: []coding{{"http://terminology.hl7.org/CodeSystem/observation-category", code, display}}}
}

// The categories of observations. Source: docs/decisions/fhir.md, "Category".
var (
	vitalSigns = category("vital-signs", "Vital Signs")
	laboratory = category("laboratory", "Laboratory")
)

// begin writes what everything that is said of a reading shares.
func begin(s Stored) *observation {
	r := s.Reading
	o := &observation{
		ResourceType:      "Observation",
		Identifier:        []identifier{{uuidSystem, "urn:uuid:" + s.ID}},
		Status:            "final",
		Category:          []concept{vitalSigns},
		EffectiveDateTime: local(r.MeasuredAt, s.Zone),
		Issued:            validate.FormatInstant(s.CreatedAt),
	}
	switch {
	case s.EnteredInError:
		o.Status = "entered-in-error"
	case s.Suspect:
		o.Status = "preliminary"
	}
	o.Device, o.Contained = s.device()
	o.vouch(s)
	return o
}

// build writes what both forms share. Its one error is a kind without a FHIR form.
func build(s Stored) (*observation, error) {
	r, o := s.Reading, begin(s)
	absent := absentReason(s.DeviceError)
	kind := r.Kind.Definition()
	if !r.Kind.Valid() {
		return nil, fmt.Errorf("no FHIR form for observation type %q", r.Kind)
	}
	o.Meta.Profile = []string{profilePrefix + kind.FHIR.Profile}
	for _, code := range kind.FHIR.Codes {
		o.Code.Coding = append(o.Code.Coding, loinc(code))
	}
	if kind.FHIR.Laboratory {
		o.Category = append(o.Category, laboratory)
	}
	for _, p := range kind.All {
		switch value := r.Value(p); {
		case p == kind.FHIR.Value:
			o.value(value, p.FHIR, absent)
		case value != nil && p.FHIR != nil, slices.Contains(kind.Required, p):
			o.component(p.FHIR, value, absent)
		}
	}
	if o.ValueQuantity != nil {
		o.ValueQuantity.Comparator = r.Qualifier(vitals.Comparator)
	}
	for _, m := range kind.Qualifiers {
		if answer, known := m.Answers[r.Qualifier(m)]; known {
			o.answer(m.Question, answer)
		}
		if said := r.Qualifier(m); m.Bit.Code != "" && said != "" {
			o.Component = append(o.Component, component{
				Code: concept{Coding: []coding{{bitSystem, m.Bit.Code, m.Bit.Display}}}, ValueBoolean: new(said == vitals.Yes),
			})
		}
	}
	return o, nil
}

// value sets the observation's own value, or why there is none.
func (o *observation) value(v *float64, in *vitals.Quantity, absent *concept) {
	if v == nil {
		o.DataAbsentReason = absent
		return
	}
	o.ValueQuantity = quantityOf(*v, in)
}

// component adds a component, if only to say why its value is not there.
// Source: docs/decisions/fhir.md, "Missing values"; FHIR R4 vital signs, invariant vs-3.
func (o *observation) component(in *vitals.Quantity, v *float64, absent *concept) {
	c := component{Code: concept{Coding: []coding{loinc(in.Code)}}}
	if v == nil {
		c.DataAbsentReason = absent
	} else {
		c.ValueQuantity = quantityOf(*v, in)
	}
	o.Component = append(o.Component, c)
}

// answer adds what a reading says besides its numbers. Source: docs/decisions/fhir.md, "Meal context in FHIR".
func (o *observation) answer(question vitals.Code, said vitals.Answer) {
	value := concept{Text: said.Text}
	if said.Code != "" {
		value.Coding = []coding{{System: mdcSystem, Code: said.Code}}
	}
	o.Component = append(o.Component, component{
		Code: concept{Coding: []coding{{mdcSystem, question.Code, question.Display}}}, ValueCodeableConcept: &value,
	})
}

func absentReason(deviceError bool) *concept {
	reason := coding{absentSystem, "unknown", "Unknown"}
	if deviceError {
		reason = coding{absentSystem, "error", "Error"}
	}
	return &concept{Coding: []coding{reason}}
}

func quantityOf(v float64, in *vitals.Quantity) *quantity {
	return &quantity{Value: vitals.RoundHalfUp(v, in.Decimals), Unit: in.Unit, System: ucumSystem, Code: in.UCUM}
}
