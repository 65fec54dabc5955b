package audit_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The AuditEvent is valid FHIR R4 for every actor and outcome.
func TestAuditEventsAreValid(t *testing.T) {
	resources := map[string]json.RawMessage{}
	for i, row := range []collections.AuditRow{
		{Event: "patient.update", Action: "U", ActorType: "user", ActorID: "4", ActorEmail: "nurse@vigil.test", ActorRole: "nurse", ResourceType: "Patient", ResourceID: "p1", Patient: "p1", SourceIP: "192.0.2.7", Client: "curl/8", RequestID: "r1"},
		{Event: "auth.login_failed", Action: "E", Outcome: "4", ActorType: "anonymous", ResourceType: "LoginKey", ResourceID: "k", SourceIP: "2001:db8::1"},
		{Event: "observation.create", Action: "C", ActorType: "gateway", ResourceType: "Observation", ResourceID: "o1", Patient: "p1"},
		{Event: "emr.transmit", Action: "E", Outcome: "8", ActorType: "system", ResourceType: "Transmission", ResourceID: "TXN-2026-000001", Patient: "p1"},
		{Event: "user.delete", Action: "D", ActorType: "superuser", ActorID: "s1"},
		{Event: "patient.read", Action: "R", ActorType: "emr"},
	} {
		row.ID, row.RecordedAt = collections.NumberID(int64(i+1)), "2026-01-15T13:45:00.000000Z"
		if row.Outcome == "" {
			row.Outcome = "0"
		}
		encoded, err := json.Marshal(audit.StoredEntry{AuditRow: row}.FHIR("https://vigil.example.org"))
		if err != nil {
			t.Fatal(err)
		}
		resources[fmt.Sprintf("%s by %s", row.Event, row.ActorType)] = encoded
	}
	resources["broken"] = json.RawMessage(`{"resourceType":"AuditEvent","id":"1"}`)
	for name, issues := range vigiltest.FHIRIssues(t, resources) {
		if (len(issues) > 0) != (name == "broken") {
			t.Errorf("%s: %v", name, issues)
		}
	}
}
