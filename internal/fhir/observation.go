package fhir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

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
	// Bounds are those by which the values were evaluated, by parameter; nil omits interpretation and reference range.
	Bounds map[string]vitals.Limits
	// WithoutInterpretation omits both from the delivered forms; the served ones always have them.
	WithoutInterpretation bool
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
	s = s.asDelivered()
	o, err := buildObservation(s)
	if err != nil {
		return Resource{err: err}
	}
	o.setDelivery(externalID, s)
	return Resource{content: o}
}

// asDelivered leaves out what the practice does not send.
func (s StoredObservation) asDelivered() StoredObservation {
	if s.WithoutInterpretation {
		s.Bounds = nil
	}
	return s
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
			o.setJudgment(s.interpret(p, value))
		case value != nil && p.FHIR != nil, slices.Contains(kind.Required, p):
			o.addComponent(p.FHIR, value, absent, s.interpret(p, value))
		}
	}
	if o.ValueQuantity != nil {
		o.ValueQuantity.Comparator = r.Qualifier(vitals.Comparator)
	}
	o.Note = notes(r)
	for _, m := range kind.Qualifiers {
		if answer, known := m.Answers[r.Qualifier(m)]; known {
			o.addQualifier(m.ComponentCode, answer)
		}
		if qualifier := r.Qualifier(m); m.Bit.Code != "" && qualifier != "" {
			o.Component = append(o.Component, component{
				Code: concept{Coding: []coding{{bitSystem, m.Bit.Code, m.Bit.Display}}}, ValueBoolean: new(qualifier == vitals.Yes),
			})
		}
	}
	return o, nil
}

// notes states what a number alone does not: a value beyond the meter's range, and a weak signal. Source: docs/decisions/fhir.md,
// "Notes of an observation".
func notes(r vitals.Reading) (list []annotation) {
	if value := r.Kind.Definition().FHIR.Value; value != nil && r.Value(value) != nil && r.Qualifier(vitals.Comparator) != "" {
		list = append(list, annotation{value.Label + " " + r.ValueText(value) + " " + value.Range.Unit + ": beyond the range of the meter."})
	}
	if r.HasWeakSignal() {
		list = append(list, annotation{"Perfusion index " + r.ValueText(vitals.PerfusionIndex) + " %: weak signal, repeat."})
	}
	return list
}

// setValue sets the value of the observation, or the reason why it is absent.
func (o *observation) setValue(v *float64, in *vitals.Quantity, absent *concept) {
	if v == nil {
		o.DataAbsentReason = absent
		return
	}
	o.ValueQuantity = quantityOf(*v, in)
}

func (o *observation) setJudgment(j evaluation) {
	o.Interpretation, o.ReferenceRange = j.interpretation, j.ranges
}

// addComponent adds a component with a value or the reason why it is absent.
// Source: docs/decisions/fhir.md, "Missing values"; FHIR R4 vital signs, invariant vs-3.
func (o *observation) addComponent(in *vitals.Quantity, v *float64, absent *concept, j evaluation) {
	c := component{Code: concept{Coding: []coding{loinc(in.Code)}}, Interpretation: j.interpretation, ReferenceRange: j.ranges}
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

// PartID returns the id of an additional resource that is sent for a record, derived from the record's id and the name of the part.
// Source: RFC 9562, section 5.5.
func PartID(id, part string) string {
	name, err := uuid.Parse(id)
	if err != nil {
		name = uuid.Nil
	}
	return uuid.NewSHA1(name, []byte(part)).String()
}

// HeartRatePart is the part name of the heart rate of a reading, for [PartID].
const HeartRatePart = "heart_rate"

// HasHeartRate reports whether a reading includes a pulse.
func HasHeartRate(r vitals.Reading) bool { return r.Value(vitals.Pulse) != nil }

// DeliveredHeartRate returns the pulse of a reading as a separate observation in the form sent to the EMR. The observation of the reading
// contains it as a component, too. Source: docs/decisions/fhir.md, "Heart rate as its own observation".
func DeliveredHeartRate(s StoredObservation, externalID string) Resource {
	pulse := vitals.Pulse
	value := s.Reading.Value(pulse)
	if value == nil {
		return Resource{err: fmt.Errorf("the reading has no pulse")}
	}
	s = s.asDelivered()
	o := newObservation(s)
	o.Meta.Profile = []string{profilePrefix + pulse.StandaloneProfile}
	o.Identifier = []identifier{{uuidSystem, "urn:uuid:" + PartID(s.ID, HeartRatePart)}}
	o.Code = concept{Coding: []coding{loinc(pulse.FHIR.Code)}}
	o.ValueQuantity = quantityOf(*value, pulse.FHIR)
	o.setJudgment(s.interpret(pulse, value))
	o.DerivedFrom = []reference{{Type: "Observation", Identifier: &identifier{uuidSystem, "urn:uuid:" + s.ID}}}
	o.setDelivery(externalID, s)
	return Resource{content: o}
}

// formatLocalTime formats a time with the UTC offset of the patient's zone at that time, with fractions as in [validate.FormatInstant].
// Source: docs/decisions/fhir.md, "Identifier and issued".
func formatLocalTime(at time.Time, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	at = at.In(zone).Truncate(time.Microsecond)
	layout := "2006-01-02T15:04:05.000000Z07:00"
	switch ns := at.Nanosecond(); {
	case ns == 0:
		layout = time.RFC3339
	case ns%int(time.Millisecond) == 0:
		layout = "2006-01-02T15:04:05.000Z07:00"
	}
	return at.Format(layout)
}

// patientReference returns a reference to the EMR's patient. The id may start with "Patient/".
func patientReference(externalID string) reference {
	return reference{Reference: "Patient/" + strings.TrimPrefix(externalID, "Patient/")}
}

// setDelivery sets the EMR's patient id and, for an update, the EMR's id and the status.
func (o *observation) setDelivery(externalID string, s StoredObservation) {
	o.setSubject(patientReference(externalID))
	o.ID = s.EMRID
	if s.EMRID != "" && !s.EnteredInError && !s.Suspect {
		o.Status = "amended" // FHIR R4, observation-status: final once, and changed since
	}
}

// setSubject sets the patient, who is also the performer unless staff entered the values. Source: docs/decisions/fhir.md, "Typed and measured".
func (o *observation) setSubject(patient reference) {
	o.Subject, o.Performer = patient, []reference{{Reference: patient.Reference}}
	if o.byStaff {
		o.Performer = []reference{{Type: "Practitioner", Display: "Staff"}}
	}
}
