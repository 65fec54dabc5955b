package fhir

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// PartID is the id, and with it the identifier, of something that is sent about a record besides the record itself: the same
// whenever it is asked for. Source: RFC 9562, section 5.5.
func PartID(id, part string) string {
	name, err := uuid.Parse(id)
	if err != nil {
		name = uuid.Nil
	}
	return uuid.NewSHA1(name, []byte(part)).String()
}

// HeartRatePart names the heart rate of a reading, for [PartID].
const HeartRatePart = "heart_rate"

// HasHeartRate reports whether a reading has a pulse besides what it is about.
func HasHeartRate(r vitals.Reading) bool { return r.Value(vitals.Pulse) != nil }

// DeliveredHeartRate is the pulse of a reading as an observation of its own, in the form sent to the EMR. The reading itself has it as a
// component, too. Source: docs/decisions/fhir.md, "Heart rate as its own observation".
func DeliveredHeartRate(s Stored, externalID string) Resource {
	pulse := vitals.Pulse
	value := s.Reading.Value(pulse)
	if value == nil {
		return Resource{err: fmt.Errorf("the reading has no pulse")}
	}
	o := begin(s)
	o.Meta.Profile = []string{profilePrefix + pulse.Alone}
	o.Identifier = []identifier{{uuidSystem, "urn:uuid:" + PartID(s.ID, HeartRatePart)}}
	o.Code = concept{Coding: []coding{loinc(pulse.FHIR.Code)}}
	o.ValueQuantity = quantityOf(*value, pulse.FHIR)
	o.DerivedFrom = []reference{{Type: "Observation", Identifier: &identifier{uuidSystem, "urn:uuid:" + s.ID}}}
	o.sendTo(externalID, s)
	return Resource{content: o}
}

// local writes a time with the offset that the patient's clock had then, the fraction as [input.FormatInstant] has it.
// Source: docs/decisions/fhir.md, "Identifier and issued".
func local(at time.Time, zone *time.Location) string {
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

// patientReference is the EMR's patient, with or without a leading "Patient/".
func patientReference(externalID string) reference {
	return reference{Reference: "Patient/" + strings.TrimPrefix(externalID, "Patient/")}
}

// sendTo writes whom the observation is about, by the EMR's own id, and under which id of the EMR's it is to be kept.
func (o *observation) sendTo(externalID string, s Stored) {
	o.about(patientReference(externalID))
	o.ID = s.EMRID
	if s.EMRID != "" && !s.EnteredInError {
		o.Status = "amended" // FHIR R4, observation-status: final once, and changed since
	}
}

// about writes the patient, who is the performer, too, of what a portal user typed.
func (o *observation) about(patient reference) {
	o.Subject = patient
	if o.byPatient {
		o.Performer = []reference{{Reference: patient.Reference}}
	}
}
