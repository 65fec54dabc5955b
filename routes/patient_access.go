package routes

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// patient looks up the patient of the path with find and checks that the caller may see the patient.
func (a *api) patient(c *web.Call, find func(core.App, string) (*collections.Patient, error)) (*collections.Patient, error) {
	id, err := c.PathUUID()
	if err != nil {
		return nil, err
	}
	if c.Reach == authz.Own && id != c.Caller.PatientID {
		return nil, fault.Missing()
	}
	p, err := find(c.App, id)
	if err != nil {
		return nil, fault.OrMissing(err)
	}
	return p, a.authorizePatient(c, id)
}

// withRecord serves a row about the object of its path. Find also checks that the caller may see the object.
func withRecord[T any](find func(*api, *web.Call) (T, error), handle func(*api, *web.Call, T) error) handler {
	return func(a *api, c *web.Call) error {
		found, err := find(a, c)
		if err != nil {
			return err
		}
		return handle(a, c, found)
	}
}

// byUUID finds the object of the path by its UUID.
func byUUID[T any](find func(core.App, string) (T, error)) func(*api, *web.Call) (T, error) {
	return func(_ *api, c *web.Call) (found T, err error) {
		id, err := c.PathUUID()
		if err != nil {
			return found, err
		}
		found, err = find(c.App, id)
		return found, fault.OrMissing(err)
	}
}

// withPatient serves a row about the patient of its path.
func withPatient(handle func(*api, *web.Call, *collections.Patient) error) handler {
	return withRecord(func(a *api, c *web.Call) (*collections.Patient, error) { return a.patient(c, collections.FindPatient) }, handle)
}

// withAnyPatient is withPatient including deleted patients.
func withAnyPatient(handle func(*api, *web.Call, *collections.Patient) error) handler {
	return withRecord(func(a *api, c *web.Call) (*collections.Patient, error) {
		return a.patient(c, collections.FindPatientAnyState)
	}, handle)
}

// authorizePatient denies access to a patient outside the caller's care teams, if the practice restricts clinicians to
// these. A reason in the emergency header grants access and is recorded. Handlers call it before they read or change
// data of a patient. Source: docs/decisions/patients.md, "Care team" and docs/decisions/security.md, "Emergency
// access".
func (a *api) authorizePatient(c *web.Call, patientID string) error {
	c.RecordAuthorizedPatient(patientID)
	if !a.confinedToTeams(c) {
		return nil
	}
	if inCare, err := a.isInCare(c, patientID); err != nil || inCare {
		return err
	}
	given := c.Request.Header.Values(web.EmergencyHeader)
	if len(given) == 0 {
		return fault.New(fault.Forbidden, "permission_denied",
			"The patient is not in your care. In an emergency, send a reason in "+web.EmergencyHeader+".")
	}
	checks := validate.NewChecks()
	text := checks.Text(web.EmergencyHeader, validate.Of(given[0]), validate.Required(500).Multiline())
	if text != "" && len([]rune(text)) < 10 {
		checks.Reject(web.EmergencyHeader, "Ensure this field has at least 10 characters.")
	}
	if err := checks.Err(); err != nil {
		return err
	}
	return a.recordEmergency(c, patientID, phi.Text(text))
}

// isInCare reports whether a patient is in the care of a caller who is confined to care teams, or the caller is on call for them. Source:
// docs/decisions/escalations.md, "On call".
func (a *api) isInCare(c *web.Call, patientID string) (bool, error) {
	if onTeam, err := patients.IsOnCareTeam(c.App, patientID, c.Caller.RecordID); err != nil || onTeam {
		return onTeam, err
	}
	return collections.IsOnCallFor(c.App, patientID, c.Caller.RecordID)
}

// recordEmergency stores the reason in the audit trail and notifies the patient's care team.
func (a *api) recordEmergency(c *web.Call, patientID string, reason phi.Text) error {
	return c.App.RunInTransaction(func(tx core.App) error {
		err := audit.Append(tx, audit.Entry{
			Event: audit.EmergencyAccess, Actor: c.Actor(), ResourceType: audit.ResourcePatient, ResourceID: patientID,
			PatientID: patientID, Reason: reason,
		}, c.Now)
		if err != nil {
			return err
		}
		return notifications.NotifyOfEmergencyAccess(tx, patientID, c.Caller.Email, reason, c.Now)
	})
}

// authorizePresentPatient is authorizePatient for a patient who may have been deleted, which is answered as not found.
func (a *api) authorizePresentPatient(c *web.Call, patientID string) error {
	if _, err := collections.FindPatient(c.App, patientID); err != nil {
		return fault.OrMissing(err)
	}
	return a.authorizePatient(c, patientID)
}

// careTeamFilter returns the member of the care teams that limit a list, or "" for no limit. A list about a single
// patient is authorized like that patient.
func (a *api) careTeamFilter(c *web.Call, patientID string) (userRecordID string, err error) {
	switch {
	case !a.confinedToTeams(c):
		return "", nil
	case patientID != "":
		return "", a.authorizePatient(c, patientID)
	}
	return c.Caller.RecordID, nil
}

// careTeamFilterAfter is careTeamFilter for a list whose filters are parsed; it reports their errors first.
func (a *api) careTeamFilterAfter(c *web.Call, q *web.Query, patientID string) (userRecordID string, err error) {
	if err := q.Err(); err != nil {
		return "", err
	}
	return a.careTeamFilter(c, patientID)
}

// confinedToTeams reports whether the caller sees only patients of their own care teams.
func (a *api) confinedToTeams(c *web.Call) bool {
	return a.RestrictToCareTeam && authz.IsCareTeamRole(c.Caller.Role)
}
