package fhir

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/vigilhealth/vigil/internal/vitals"
)

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
	o := newObservation(s)
	o.Meta.Profile = []string{profilePrefix + pulse.Alone}
	o.Identifier = []identifier{{uuidSystem, "urn:uuid:" + PartID(s.ID, HeartRatePart)}}
	o.Code = concept{Coding: []coding{loinc(pulse.FHIR.Code)}}
	o.ValueQuantity = quantityOf(*value, pulse.FHIR)
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
	if s.EMRID != "" && !s.EnteredInError {
		o.Status = "amended" // FHIR R4, observation-status: final once, and changed since
	}
}

// setSubject sets the patient, who is also the performer if a portal user entered the values.
func (o *observation) setSubject(patient reference) {
	o.Subject = patient
	if o.byPatient {
		o.Performer = []reference{{Reference: patient.Reference}}
	}
}
