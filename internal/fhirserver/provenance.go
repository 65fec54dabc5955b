package fhirserver

import (
	"cmp"
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// provenanceType is the origins of the readings.
var provenanceType = &ResourceType{
	Type: "Provenance", Action: authz.ReadObservations, Event: audit.ObservationRead, AuditResource: audit.ResourceObservation, IsLarge: true,
	Profiles: []string{"us-core-provenance"},
	Params: []Param{
		{Name: "target", Type: "reference", Definition: definitions + "Provenance-target", Modifiers: []string{"Observation"}, add: filterByTarget},
		patientParam("patient", definitions+"Provenance-patient"),
		timeParam("recorded", definitions+"Provenance-recorded", collections.ByCreated),
	},
	Orders:     slices.Concat(newestFirst("recorded", collections.ByCreated), ascendingFirst("_lastUpdated", collections.ByUpdated), ascendingFirst("_id", collections.ByID)),
	ofPatients: true, table: collections.ReadingSearch, render: renderProvenances,
}

func filterByTarget(s *Search, in *parseContext, v values) string {
	ids, ok := in.ids("Observation", v)
	if !ok {
		return msgReference
	}
	s.FilterIDs(ids...)
	return ""
}

func renderProvenances(e *Engine, app core.App, records []*core.Record, r Reader) ([]Row, error) {
	readings := readingsOf(records)
	c, err := e.loadReadingContext(app, readings)
	if err != nil {
		return nil, err
	}
	var withCreator, confirmed []string // readings with a creator beyond the origin, and those that a person confirmed
	for _, o := range readings {
		if o.Origin == vitals.OriginStaff || o.Origin == vitals.OriginMachine {
			withCreator = append(withCreator, o.ID)
		}
		if isVerified(o) {
			confirmed = append(confirmed, o.ID)
		}
	}
	creators, err := collections.CreatorsOfObservations(app, withCreator)
	if err != nil {
		return nil, err
	}
	confirmers, err := collections.ConfirmersOfObservations(app, confirmed)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(readings))
	for i, o := range readings {
		origin := e.originOf(o, c, creators[o.ID], r)
		if by := confirmers[o.ID]; isVerified(o) {
			origin.Verified = true
			if by.ActorType == string(audit.ByUser) && r.Role != authz.Patient {
				origin.Verifier = by.ActorID
			}
		}
		rows[i] = Row{ID: o.ID, PatientID: o.PatientID, Resource: fhir.Provenance(origin)}
	}
	return rows, nil
}

// isVerified reports whether a person, and not a second reading, confirmed the values.
func isVerified(o ingest.Observation) bool {
	return o.Review == ingest.Confirmed && o.ConfirmedBy != alerts.System
}

func (e *Engine) originOf(o ingest.Observation, c readingContext, by collections.ObservationCreator, r Reader) fhir.ReadingOrigin {
	origin := fhir.ReadingOrigin{
		ObservationID: o.ID, PatientID: o.PatientID, Source: o.Origin, Device: c.deviceOf(o), DeviceID: o.Reading.DeviceID,
		Practice: cmp.Or(e.Practice, "The practice"), CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
	}
	switch {
	case by.ActorType == string(audit.ByUser) && r.Role != authz.Patient: // no names of staff: docs/decisions/roles.md, "Endpoint permissions"
		origin.Staff = by.ActorID
	case by.ActorType == string(audit.ByClient):
		origin.Machine = by.ActorName
	}
	return origin
}
