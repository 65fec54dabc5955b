package escalations

import (
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// answers reports whether somebody can be given an escalation.
func answers(user *collections.User) bool {
	switch access.Role(user.Role()) {
	case access.Provider, access.Nurse, access.ClinicalManager, access.Admin:
		return user.Active()
	}
	return false
}

// findAssignee is the active clinician with the address; without one, the patient's primary provider, if that is one; else
// nobody. Source: docs/decisions/escalations.md, "Assignment".
func findAssignee(tx core.App, email string, patient *collections.Patient) (*collections.User, error) {
	if email == "" {
		id := patient.GetString(collections.PatientPrimaryProvider)
		if id == "" {
			return nil, nil
		}
		user, err := collections.FindUser(tx, id)
		if collections.Missing(err) || (err == nil && !answers(user)) {
			return nil, nil
		}
		return user, err
	}
	user, err := collections.FindUserByEmail(tx, strings.ToLower(strings.TrimSpace(email)))
	if collections.Missing(err) || (err == nil && !answers(user)) {
		return nil, fault.Field("assigned_to", "Must be the e-mail address of an active clinician.")
	}
	return user, err
}

// assign gives the escalation to somebody, or to nobody.
func assign(record *core.Record, assignee *collections.User, now time.Time) {
	if assignee == nil {
		record.Set("assigned_to", "")
		record.Set("assigned_at", "")
		return
	}
	record.Set("assigned_to", assignee.Email())
	record.Set("assigned_at", collections.Instant(now))
}

func author(by audit.Actor) string {
	if by.Email == "" {
		return alerts.System
	}
	return by.Email
}
