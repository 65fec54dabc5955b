package fhir

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Stored is an observation as the service keeps it: all that its FHIR form depends on.
type Stored struct {
	ID        string // UUID of the observation
	PatientID string // our UUID of the patient
	Reading   vitals.Reading
	// EnteredInError says that staff withdrew the reading.
	EnteredInError bool
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
	o.ID = s.ID
	o.Meta.VersionID = strconv.Itoa(max(s.Version, 1))
	o.Meta.LastUpdated = input.FormatInstant(s.UpdatedAt)
	o.Subject = reference{Reference: "Patient/" + s.PatientID, Display: display.Reveal()}
	return Resource{content: o}
}

// Delivered is the form sent to the EMR: the EMR's patient id (with or without a leading "Patient/"), no name, and
// neither id nor version, which the EMR assigns. The identifier still carries our id.
// Source: docs/decisions/fhir.md, "Subject when served and when delivered".
func Delivered(s Stored, externalID string) Resource {
	o, err := build(s)
	if err != nil {
		return Resource{err: err}
	}
	o.Subject = reference{Reference: "Patient/" + strings.TrimPrefix(externalID, "Patient/")}
	return Resource{content: o}
}

const (
	loincSystem  = "http://loinc.org"
	ucumSystem   = "http://unitsofmeasure.org"
	mdcSystem    = "urn:iso:std:iso:11073:10101"
	absentSystem = "http://terminology.hl7.org/CodeSystem/data-absent-reason"
	deviceSystem = "urn:rpm:device"
	uuidSystem   = "urn:ietf:rfc:3986"

	profilePrefix = "http://hl7.org/fhir/us/core/StructureDefinition/"
)

func loinc(code, display string) coding { return coding{loincSystem, code, display} }

func category(code, display string) concept {
	return concept{Coding: []coding{{"http://terminology.hl7.org/CodeSystem/observation-category", code, display}}}
}

// The codes of whole observations and of their components.
// Source: docs/decisions/fhir.md, "Codes, units, profiles per type" and "Category"; LOINC; US Core.
var (
	vitalSigns = category("vital-signs", "Vital Signs")
	laboratory = category("laboratory", "Laboratory")

	pressurePanel = loinc("85354-9", "Blood pressure panel with all children optional")
	systolic      = loinc("8480-6", "Systolic blood pressure")
	diastolic     = loinc("8462-4", "Diastolic blood pressure")
	heartRate     = loinc("8867-4", "Heart rate")
	bodyWeight    = loinc("29463-7", "Body weight")
	// US Core requires both saturation codings.
	saturationByOximetry = loinc("59408-5", "Oxygen saturation in Arterial blood by Pulse oximetry")
	saturation           = loinc("2708-6", "Oxygen saturation in Arterial blood")
	glucoseByGlucometer  = loinc("41653-7", "Glucose [Mass/volume] in Capillary blood by Glucometer")
	glucose              = loinc("2339-0", "Glucose [Mass/volume] in Blood")

	mealContext = coding{mdcSystem, "8417864", "MDC_CTXT_GLU_MEAL"}
)

// unit is how a value is sent: at most so many decimals, its words and its UCUM code.
// Source: docs/decisions/fhir.md, "Rounding"; UCUM.
type unit struct {
	decimals   int
	name, code string
}

var (
	mmHg           = unit{0, "mmHg", "mm[Hg]"}
	beatsPerMinute = unit{0, "beats/minute", "/min"}
	kilogram       = unit{2, "kg", "kg"}
	percent        = unit{1, "%", "%"}
	mgPerDL        = unit{0, "mg/dL", "mg/dL"}
)

// meals are the answers to the meal context. Bedtime has text only: the published tables disagree on its code.
// Source: docs/decisions/fhir.md, "Meal context in FHIR"; ISO/IEEE 11073-10101; HL7 Personal Health Device guide.
var meals = map[string]concept{
	vitals.MealBefore:  {Coding: []coding{{System: mdcSystem, Code: "8417868"}}, Text: "Before meal"},
	vitals.MealAfter:   {Coding: []coding{{System: mdcSystem, Code: "8417872"}}, Text: "After meal"},
	vitals.MealFasting: {Coding: []coding{{System: mdcSystem, Code: "8417876"}}, Text: "Fasting"},
	vitals.MealRandom:  {Coding: []coding{{System: mdcSystem, Code: "8417880"}}, Text: "Random"},
	vitals.MealBedtime: {Text: "Bedtime"},
}

// build writes what both forms share. Its one error is a kind without a FHIR form.
func build(s Stored) (*observation, error) {
	r := s.Reading
	o := &observation{
		ResourceType:      "Observation",
		Identifier:        []identifier{{uuidSystem, "urn:uuid:" + s.ID}},
		Status:            "final",
		Category:          []concept{vitalSigns},
		EffectiveDateTime: input.FormatInstant(r.MeasuredAt),
		Issued:            input.FormatInstant(s.CreatedAt),
	}
	if s.EnteredInError {
		o.Status = "entered-in-error"
	}
	if r.DeviceID != "" {
		o.Device = &reference{Identifier: &identifier{deviceSystem, r.DeviceID}, Display: r.DeviceID}
	}
	absent := absentReason(s.DeviceError)
	switch r.Kind {
	case vitals.BloodPressure:
		o.claim("us-core-blood-pressure", pressurePanel)
		o.require(systolic, r.Systolic, mmHg, absent)
		o.require(diastolic, r.Diastolic, mmHg, absent)
		o.offer(heartRate, r.Pulse, beatsPerMinute)
	case vitals.Weight:
		o.claim("us-core-body-weight", bodyWeight)
		o.value(r.WeightKg, kilogram, absent)
	case vitals.PulseOximetry:
		o.claim("us-core-pulse-oximetry", saturationByOximetry, saturation)
		o.value(r.SpO2, percent, absent)
		o.offer(heartRate, r.Pulse, beatsPerMinute)
	case vitals.BloodGlucose:
		o.claim("us-core-observation-clinical-result", glucoseByGlucometer, glucose)
		o.Category = append(o.Category, laboratory)
		o.value(r.GlucoseMgDL, mgPerDL, absent)
		if o.ValueQuantity != nil {
			o.ValueQuantity.Comparator = r.Comparator
		}
		if meal, known := meals[r.MealContext]; known {
			o.Component = append(o.Component, component{
				Code: concept{Coding: []coding{mealContext}}, ValueCodeableConcept: &meal,
			})
		}
	default:
		return nil, fmt.Errorf("no FHIR form for observation type %q", r.Kind)
	}
	return o, nil
}

// claim sets the profile and the codes of the observation.
func (o *observation) claim(profile string, codes ...coding) {
	o.Meta.Profile = []string{profilePrefix + profile}
	o.Code = concept{Coding: codes}
}

// value sets the observation's own value, or why there is none.
func (o *observation) value(v *float64, u unit, absent *concept) {
	if v == nil {
		o.DataAbsentReason = absent
		return
	}
	o.ValueQuantity = u.quantity(*v)
}

// require adds a component that must be there, if only to say why its value is not.
// Source: docs/decisions/fhir.md, "Missing values"; FHIR R4 vital signs, invariant vs-3.
func (o *observation) require(code coding, v *float64, u unit, absent *concept) {
	c := component{Code: concept{Coding: []coding{code}}}
	if v == nil {
		c.DataAbsentReason = absent
	} else {
		c.ValueQuantity = u.quantity(*v)
	}
	o.Component = append(o.Component, c)
}

// offer adds a component when it was measured.
func (o *observation) offer(code coding, v *float64, u unit) {
	if v != nil {
		o.require(code, v, u, nil)
	}
}

func absentReason(deviceError bool) *concept {
	reason := coding{absentSystem, "unknown", "Unknown"}
	if deviceError {
		reason = coding{absentSystem, "error", "Error"}
	}
	return &concept{Coding: []coding{reason}}
}

func (u unit) quantity(v float64) *quantity {
	return &quantity{Value: vitals.RoundHalfUp(v, u.decimals), Unit: u.name, System: ucumSystem, Code: u.code}
}
