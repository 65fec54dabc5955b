package fhirserver

import (
	"slices"
	"strconv"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// auditEventType is the entries of the audit trail. Their numbers are in the order of time, so searches without a date condition sort by number: no index
// has the other search columns in the order of time.
var auditEventType = &ResourceType{
	Type: "AuditEvent", Action: authz.ReadAudit, Event: audit.AuditRead, AuditResource: audit.ResourceAuditEvent, IsLarge: true,
	Params: []Param{
		timeParam("date", definitions+"AuditEvent-date", collections.ByCreated),
		patientParam("patient", definitions+"AuditEvent-patient"),
		codeParam("action", definitions+"AuditEvent-action", collections.ByAction, "http://hl7.org/fhir/audit-event-action", unmappedCodes("C", "R", "U", "D", "E")),
		codeParam("outcome", definitions+"AuditEvent-outcome", collections.ByOutcome, "http://terminology.hl7.org/CodeSystem/audit-event-outcome", unmappedCodes("0", "4", "8", "12")),
	},
	Orders:        slices.Concat(newestFirst("date", collections.ByCreated), ascendingFirst("_id", collections.ByID)),
	orderedByTime: true, table: collections.AuditSearch, numericID: true, render: renderAudit,
}

func unmappedCodes(values ...string) (list []code) {
	for _, value := range values {
		list = append(list, code{value, []string{value}})
	}
	return list
}

func renderAudit(e *Engine, _ core.App, records []*core.Record, _ Reader) ([]Row, error) {
	rows := make([]Row, len(records))
	for i, record := range records {
		entry := audit.StoredEntry{AuditRow: collections.AuditRowOf(record)}
		rows[i] = Row{ID: strconv.FormatInt(entry.Number(), 10), PatientID: entry.Patient, Resource: fhir.NewResource(entry.FHIR(e.PublicURL).Versioned())}
	}
	return rows, nil
}
