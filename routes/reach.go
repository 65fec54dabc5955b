package routes

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
)

// emergencyHeader opens a patient outside the caller's care teams; its value is the reason.
const emergencyHeader = "X-Emergency-Access"

// patient finds the patient of the path, if the caller may see that patient, as find has it.
func (a *api) patient(c *call, find func(core.App, string) (*collections.Patient, error)) (*collections.Patient, error) {
	id, err := c.pathUUID()
	if err != nil {
		return nil, err
	}
	if c.Scope == access.Own && id != c.Caller.PatientID {
		return nil, fault.Missing()
	}
	p, err := find(c.App, id)
	if collections.Missing(err) {
		return nil, fault.Missing()
	}
	if err != nil {
		return nil, err
	}
	return p, a.reach(c, id)
}

// reach refuses a patient of other colleagues where the practice restricts its clinicians to their care teams. A reason
// in the emergency header opens the way, and is recorded. Handlers call it with the patient they are about to read or
// act on. Source: docs/decisions/patients.md, "Care team" and docs/decisions/security.md, "Emergency access".
func (a *api) reach(c *call, patientID string) error {
	if !a.confinedToTeams(c) {
		return nil
	}
	onTeam, err := patients.OnCareTeam(c.App, patientID, c.Caller.RecordID)
	if err != nil || onTeam {
		return err
	}
	given := c.Request.Header.Values(emergencyHeader)
	if len(given) == 0 {
		return fault.New(fault.Forbidden, "permission_denied",
			"The patient is not in your care. In an emergency, give a reason in "+emergencyHeader+".")
	}
	checks := input.NewChecks()
	text := checks.Text(emergencyHeader, input.Of(given[0]), input.Required(500).Multiline())
	if text != "" && len([]rune(text)) < 10 {
		checks.Reject(emergencyHeader, "Ensure this field has at least 10 characters.")
	}
	if err := checks.Err(); err != nil {
		return err
	}
	return a.recordEmergency(c, patientID, phi.Text(text))
}

// recordEmergency keeps the reason and tells those responsible for the patient.
func (a *api) recordEmergency(c *call, patientID string, reason phi.Text) error {
	return c.App.RunInTransaction(func(tx core.App) error {
		err := audit.Append(tx, audit.Entry{
			Event: audit.EmergencyAccess, Actor: c.actor(), ResourceType: "Patient", ResourceID: patientID,
			PatientID: patientID, Reason: reason,
		}, c.Now)
		if err != nil {
			return err
		}
		return notifications.TellOfEmergencyAccess(tx, patientID, c.Caller.Email, reason, c.Now)
	})
}

// reachStored refuses what is stored about a patient whom the caller may not reach, or who is deleted.
func (a *api) reachStored(c *call, record *core.Record) error {
	return a.reachPresent(c, record.GetString("patient"))
}

// reachPresent is reach for a patient who may have been deleted since: then there is nothing to see.
func (a *api) reachPresent(c *call, patientID string) error {
	if _, err := collections.FindPatient(c.App, patientID); collections.Missing(err) {
		return fault.Missing()
	} else if err != nil {
		return err
	}
	return a.reach(c, patientID)
}

// team says whose care teams a list is confined to: "" for nobody's, else the caller's. A list about one patient is
// reached like that patient.
func (a *api) team(c *call, patientID string) (userRecordID string, err error) {
	switch {
	case !a.confinedToTeams(c):
		return "", nil
	case patientID != "":
		return "", a.reach(c, patientID)
	}
	return c.Caller.RecordID, nil
}

// confinedToTeams reports whether the caller sees the patients of the own care teams only.
func (a *api) confinedToTeams(c *call) bool {
	return a.RestrictToCareTeam && access.OnTeams(c.Caller.Role)
}
