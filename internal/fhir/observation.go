package fhir

import (
	"fmt"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// StoredObservation holds the fields of a stored observation from which its resource is built.
type StoredObservation struct {
	ID        string // UUID of the observation
	PatientID string // Vigil's UUID of the patient
	// ExternalID is the EMR's id of the patient; "" if it was not looked up.
	ExternalID string
	Reading    vitals.Reading
	// Origin is the source of the values; "" means a device.
	Origin vitals.Origin
	// Zone is the patient's time zone; nil means UTC.
	Zone *time.Location
	// Device is the registered device; nil omits the contained Device.
	Device *Device
	// EMRID is the id of the EMR's copy; "" creates one.
	EMRID string
	// EnteredInError: staff retracted the reading.
	EnteredInError bool
	// Suspect: the reading may belong to another person and is not confirmed.
	Suspect bool
	// DeviceError: a value is missing because the device reported an error.
	DeviceError bool
	// Version counts transforms from 1.
	Version              int
	CreatedAt, UpdatedAt time.Time
}

// Observation returns the form that the REST API serves, with Vigil's patient id, the display name, and Vigil's id and version.
// Source: docs/decisions/fhir.md, "Subject when served and when delivered" and "Identifier and issued".
func Observation(s StoredObservation, display phi.Text) Resource {
	o, err := buildObservation(s)
	if err != nil {
		return Resource{err: err}
	}
	o.setServedMeta(s)
	o.setSubject(reference{Reference: "Patient/" + s.PatientID, Display: display.Reveal()})
	return Resource{content: o}
}

// DeliveredObservation returns the form sent to the EMR. It has the EMR's patient id (which may start with "Patient/"), no name, and
// neither id nor version, which the EMR assigns. The identifier holds Vigil's id, and an update has the EMR's id.
// Source: docs/decisions/fhir.md, "Subject when served and when delivered".
func DeliveredObservation(s StoredObservation, externalID string) Resource {
	o, err := buildObservation(s)
	if err != nil {
		return Resource{err: err}
	}
	o.setDelivery(externalID, s)
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

// newObservation returns the fields that all observations of a reading share.
func newObservation(s StoredObservation) *observation {
	r := s.Reading
	o := &observation{
		ResourceType:      "Observation",
		Identifier:        []identifier{{uuidSystem, "urn:uuid:" + s.ID}},
		Status:            "final",
		Category:          []concept{vitalSigns},
		EffectiveDateTime: formatLocalTime(r.MeasuredAt, s.Zone),
		Issued:            validate.FormatInstant(s.CreatedAt),
	}
	switch {
	case s.EnteredInError:
		o.Status = "entered-in-error"
	case s.Suspect:
		o.Status = "preliminary"
	}
	o.Device, o.Contained = s.device()
	o.setReporter(s)
	return o
}

// buildObservation returns the parts that the served and the delivered form share. It fails only for a kind without a FHIR form.
func buildObservation(s StoredObservation) (*observation, error) {
	r, o := s.Reading, newObservation(s)
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
			o.setValue(value, p.FHIR, absent)
		case value != nil && p.FHIR != nil, slices.Contains(kind.Required, p):
			o.addComponent(p.FHIR, value, absent)
		}
	}
	if o.ValueQuantity != nil {
		o.ValueQuantity.Comparator = r.Qualifier(vitals.Comparator)
	}
	for _, m := range kind.Qualifiers {
		if answer, known := m.Answers[r.Qualifier(m)]; known {
			o.addQualifier(m.Question, answer)
		}
		if qualifier := r.Qualifier(m); m.Bit.Code != "" && qualifier != "" {
			o.Component = append(o.Component, component{
				Code: concept{Coding: []coding{{bitSystem, m.Bit.Code, m.Bit.Display}}}, ValueBoolean: new(qualifier == vitals.Yes),
			})
		}
	}
	return o, nil
}

// setValue sets the value of the observation, or the reason why it is absent.
func (o *observation) setValue(v *float64, in *vitals.Quantity, absent *concept) {
	if v == nil {
		o.DataAbsentReason = absent
		return
	}
	o.ValueQuantity = quantityOf(*v, in)
}

// addComponent adds a component with a value or the reason why it is absent.
// Source: docs/decisions/fhir.md, "Missing values"; FHIR R4 vital signs, invariant vs-3.
func (o *observation) addComponent(in *vitals.Quantity, v *float64, absent *concept) {
	c := component{Code: concept{Coding: []coding{loinc(in.Code)}}}
	if v == nil {
		c.DataAbsentReason = absent
	} else {
		c.ValueQuantity = quantityOf(*v, in)
	}
	o.Component = append(o.Component, c)
}

// addQualifier adds a qualifier of the reading, such as its meal context. Source: docs/decisions/fhir.md, "Meal context in FHIR".
func (o *observation) addQualifier(question vitals.Code, answer vitals.Answer) {
	value := concept{Text: answer.Text}
	if answer.Code != "" {
		value.Coding = []coding{{System: mdcSystem, Code: answer.Code}}
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
