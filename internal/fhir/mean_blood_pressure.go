package fhir

import (
	"time"

	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// MeanBloodPressure is the mean blood pressure of a patient over a period of calendar days.
type MeanBloodPressure struct {
	ID        string // UUID, derived from the patient and period
	PatientID string
	// From is the start of the period and To its exclusive end, in the patient's time zone.
	From, To time.Time
	Readings int // 0: every reading of the period was retracted
	// Systolic and Diastolic are means to one decimal.
	Systolic, Diastolic float64
	CreatedAt           time.Time
	// EMRID is the id of the EMR's copy; "" creates one.
	EMRID string
}

// The codes of the panel and its components. Source: LOINC 96607-7, 96608-5, 96609-3; US Core, profile average-blood-pressure and its example.
var (
	meanPanel     = vitals.Code{Code: "96607-7", Display: "Blood pressure panel mean systolic and mean diastolic"}
	meanSystolic  = vitals.Code{Code: "96608-5", Display: "Systolic blood pressure mean"}
	meanDiastolic = vitals.Code{Code: "96609-3", Display: "Diastolic blood pressure mean"}
	occurrences   = coding{snomedSystem, "246432004", "Number of occurrences"}
)

// meanDecimals is the precision of a mean of whole millimeters of mercury.
const meanDecimals = 1

// DeliveredMeanBloodPressure returns the mean blood pressure panel in the form sent to the EMR.
// Source: docs/decisions/fhir.md, "Mean blood pressure".
func DeliveredMeanBloodPressure(m MeanBloodPressure, externalID string) Resource {
	o := &observation{
		ResourceType:    "Observation",
		Meta:            meta{Profile: []string{profilePrefix + "us-core-average-blood-pressure"}},
		Identifier:      []identifier{{uuidSystem, "urn:uuid:" + m.ID}},
		Status:          "final",
		Category:        []concept{vitalSigns},
		Code:            concept{Coding: []coding{loinc(meanPanel)}},
		EffectivePeriod: &period{Start: formatLocalTime(m.From, m.From.Location()), End: formatLocalTime(m.To.Add(-time.Second), m.To.Location())},
		Issued:          validate.FormatInstant(m.CreatedAt),
	}
	for _, part := range []struct {
		code vitals.Code
		of   *vitals.Parameter
		mean float64
	}{{meanSystolic, vitals.Systolic, m.Systolic}, {meanDiastolic, vitals.Diastolic, m.Diastolic}} {
		in := &vitals.Quantity{Code: part.code, Decimals: meanDecimals, Unit: part.of.FHIR.Unit, UCUM: part.of.FHIR.UCUM}
		var value *float64
		if m.Readings > 0 {
			value = &part.mean
		}
		o.addComponent(in, value, absentReason(false), evaluation{})
	}
	o.Component = append(o.Component, component{Code: concept{Coding: []coding{occurrences}}, ValueInteger: &m.Readings})
	o.setDelivery(externalID, StoredObservation{EMRID: m.EMRID, EnteredInError: m.Readings == 0})
	if m.Readings == 0 {
		o.Status = "entered-in-error"
	}
	return Resource{content: o}
}
