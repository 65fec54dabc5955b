package collections

import (
	"strings"
	"time"

	"github.com/pocketbase/dbx"
)

// AuditFilter chooses rows of the audit log; zero fields choose all. From and To are included.
type AuditFilter struct {
	Event, Outcome           string
	Actor                    string // id or e-mail address
	PatientID                string
	ResourceType, ResourceID string
	From, To                 time.Time
}

// Where is the filter as a condition.
func (f AuditFilter) Where() dbx.Expression {
	conditions := Conditions{}.Equal("event", f.Event).Equal("outcome", f.Outcome).Equal("patient", f.PatientID).
		Equal("resource_type", f.ResourceType).Equal("resource_id", f.ResourceID)
	// No id holds an @ and every e-mail address does, so one column is asked and one index walked.
	if strings.Contains(f.Actor, "@") {
		conditions = conditions.Equal("actor_email", f.Actor).And("actor_email != ''") // the index leaves out who has none
	} else {
		conditions = conditions.Equal("actor_id", f.Actor)
	}
	return Every(conditions.Between("recorded_at", f.From, f.To))
}

// AuditOfPatient chooses the rows about a patient, and those of some events that may name the patient in a sealed list.
func AuditOfPatient(patientID string, events []string, from, to time.Time) dbx.Expression {
	lists := dbx.And(dbx.HashExp{"patient": ""}, dbx.NewExp("changes != ''"), oneOf("event", events))
	return dbx.And(AuditFilter{From: from, To: to}.Where(), dbx.Or(dbx.HashExp{"patient": patientID}, lists))
}
