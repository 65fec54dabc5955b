package fhirserver

import (
	"cmp"
	"strconv"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// flags are the alerts.
var flags = &Kind{
	Type: "Flag", May: authz.ReadAlerts, Event: audit.PatientRead, Audited: audit.ResourceAlert, Vast: true,
	Params: []Param{
		ofPatient("patient", definitions+"clinical-patient"),
		ofPatient("subject", definitions+"Flag-subject"),
		{Name: "status", Type: "token", add: byFlagState},
		{Name: "date", Type: "date", Definition: definitions + "clinical-date", add: byFlagTime},
	},
	Orders: []Order{
		{"date", true, collections.ByCreated}, {"date", false, collections.ByCreated}, {"_id", false, collections.ByID}, {"_id", true, collections.ByID},
	},
	ofPatients: true, table: collections.AlertSearch, number: true, render: renderFlags,
}

// flagStates are those of FHIR. What is withdrawn is neither open nor over.
var flagStates = []code{{"active", []string{collections.FlagActive}}, {"inactive", []string{collections.FlagClosed}}, {"entered-in-error", []string{collections.FlagWithdrawn}}}

func byFlagState(s *Search, _ *reading, v values) string {
	const system = "http://hl7.org/fhir/flag-status"
	states := []string{}
	for _, t := range v.tokens() {
		known := !t.any && t.system != system
		for _, c := range flagStates {
			if t.is(system, c.code) {
				states, known = append(states, c.stored...), true
			}
		}
		if !known {
			return "Must be one of: " + codes(flagStates) + "."
		}
	}
	s.narrow(collections.FlagStateIn(states))
	return ""
}

func renderFlags(_ *Engine, _ core.App, records []*core.Record, _ Reader) ([]Row, error) {
	rows := make([]Row, len(records))
	for i, record := range records {
		a := collections.AsAlert(record)
		id := strconv.FormatInt(a.Number(), 10)
		state := a.FlagState()
		rows[i] = Row{ID: id, PatientID: a.PatientID(), Resource: fhir.Flag(fhir.RaisedAlert{
			ID: id, PatientID: a.PatientID(), Type: a.Type(), Level: a.Level(), Message: phi.Text(a.DisplayMessage()), OfThings: !alerts.AboutReading(a.Type()),
			Over: state == collections.FlagClosed, Withdrawn: state == collections.FlagWithdrawn,
			CreatedAt: a.CreatedAt(), ResolvedAt: a.ResolvedAt(), UpdatedAt: a.ChangedAt(),
		})}
	}
	return rows, nil
}

// provenances say where the readings came from.
var provenances = &Kind{
	Type: "Provenance", May: authz.ReadObservations, Event: audit.ObservationRead, Audited: audit.ResourceObservation, Vast: true,
	Profiles: []string{"us-core-provenance"},
	Params: []Param{
		{Name: "target", Type: "reference", Definition: definitions + "Provenance-target", Modifiers: []string{"Observation"}, add: byTarget},
		ofPatient("patient", definitions+"Provenance-patient"),
		moment("recorded", definitions+"Provenance-recorded", collections.ByCreated),
	},
	Orders: []Order{
		{"recorded", true, collections.ByCreated},
		{"recorded", false, collections.ByCreated},
		{"_lastUpdated", false, collections.ByUpdated},
		{"_lastUpdated", true, collections.ByUpdated},
		{"_id", false, collections.ByID},
		{"_id", true, collections.ByID},
	},
	ofPatients: true, table: collections.ReadingSearch, render: renderProvenances,
}

func byTarget(s *Search, in *reading, v values) string {
	ids, ok := in.ids("Observation", v)
	if !ok {
		return msgReference
	}
	s.IDs(ids...)
	return ""
}

func renderProvenances(e *Engine, app core.App, records []*core.Record, r Reader) ([]Row, error) {
	readings := readingsOf(records)
	c, err := e.placesOf(app, readings)
	if err != nil {
		return nil, err
	}
	var told []string // those whose maker says more than their origin
	for _, o := range readings {
		if o.Origin == vitals.OriginStaff || o.Origin == vitals.OriginMachine {
			told = append(told, o.ID)
		}
	}
	creators, err := collections.CreatorsOfObservations(app, told)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(readings))
	for i, o := range readings {
		rows[i] = Row{ID: o.ID, PatientID: o.PatientID, Resource: fhir.Provenance(e.originOf(o, c, creators[o.ID], r))}
	}
	return rows, nil
}

func (e *Engine) originOf(o ingest.Observation, c places, by collections.ObservationCreator, r Reader) fhir.Origin {
	origin := fhir.Origin{
		ObservationID: o.ID, PatientID: o.PatientID, Of: o.Origin, Device: c.deviceOf(o), DeviceID: o.Reading.DeviceID,
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

// auditEvents are the entries of the audit trail, whose numbers are in the order of time: walked by them unless times are asked for, since no index
// has what else is asked for in the order of time.
var auditEvents = &Kind{
	Type: "AuditEvent", May: authz.ReadAudit, Event: audit.AuditRead, Audited: audit.ResourceAuditEvent, Vast: true,
	Params: []Param{
		moment("date", definitions+"AuditEvent-date", collections.ByCreated),
		ofPatient("patient", definitions+"AuditEvent-patient"),
		coded("action", definitions+"AuditEvent-action", collections.ByAction, "http://hl7.org/fhir/audit-event-action", same("C", "R", "U", "D", "E")),
		coded("outcome", definitions+"AuditEvent-outcome", collections.ByOutcome, "http://terminology.hl7.org/CodeSystem/audit-event-outcome", same("0", "4", "8", "12")),
	},
	Orders: []Order{
		{"date", true, collections.ByCreated}, {"date", false, collections.ByCreated}, {"_id", false, collections.ByID}, {"_id", true, collections.ByID},
	},
	numbered: true, table: collections.AuditSearch, number: true, render: renderAudit,
}

func same(values ...string) (list []code) {
	for _, value := range values {
		list = append(list, code{value, []string{value}})
	}
	return list
}

func renderAudit(e *Engine, _ core.App, records []*core.Record, _ Reader) ([]Row, error) {
	rows := make([]Row, len(records))
	for i, record := range records {
		entry := audit.Stored{AuditRow: collections.AuditRowOf(record)}
		rows[i] = Row{ID: strconv.FormatInt(entry.Number(), 10), PatientID: entry.Patient, Resource: fhir.Made(entry.FHIR(e.PublicURL).Versioned())}
	}
	return rows, nil
}
