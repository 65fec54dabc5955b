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

// patient finds the patient of the path, if the caller may see that patient, as find has it.
func (a *api) patient(c *web.Call, find func(core.App, string) (*collections.Patient, error)) (*collections.Patient, error) {
	id, err := c.PathUUID()
	if err != nil {
		return nil, err
	}
	if c.Scope == authz.Own && id != c.Caller.PatientID {
		return nil, fault.Missing()
	}
	p, err := find(c.App, id)
	if err != nil {
		return nil, fault.OrMissing(err)
	}
	return p, a.reach(c, id)
}

// of serves a row about what its path names, when the caller may see it.
func of[T any](find func(*api, *web.Call) (T, error), handle func(*api, *web.Call, T) error) handler {
	return func(a *api, c *web.Call) error {
		found, err := find(a, c)
		if err != nil {
			return err
		}
		return handle(a, c, found)
	}
}

// byUUID finds what the UUID of the path names.
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

// ofPatient serves a row about the patient of its path.
func ofPatient(handle func(*api, *web.Call, *collections.Patient) error) handler {
	return of(func(a *api, c *web.Call) (*collections.Patient, error) { return a.patient(c, collections.FindPatient) }, handle)
}

// ofAnyPatient is ofPatient for patients who have been deleted, too.
func ofAnyPatient(handle func(*api, *web.Call, *collections.Patient) error) handler {
	return of(func(a *api, c *web.Call) (*collections.Patient, error) {
		return a.patient(c, collections.FindPatientAnyState)
	}, handle)
}

// reach refuses a patient of other colleagues where the practice restricts its clinicians to their care teams. A reason
// in the emergency header opens the way, and is recorded. Handlers call it with the patient they are about to read or
// act on. Source: docs/decisions/patients.md, "Care team" and docs/decisions/security.md, "Emergency access".
func (a *api) reach(c *web.Call, patientID string) error {
	c.NoteReached(patientID)
	if !a.confinedToTeams(c) {
		return nil
	}
	onTeam, err := patients.OnCareTeam(c.App, patientID, c.Caller.RecordID)
	if err != nil || onTeam {
		return err
	}
	// Whoever is called for a patient must reach the patient. Source: docs/decisions/escalations.md, "On call".
	called, err := collections.OnCallFor(c.App, patientID, c.Caller.RecordID)
	if err != nil || called {
		return err
	}
	given := c.Request.Header.Values(web.EmergencyHeader)
	if len(given) == 0 {
		return fault.New(fault.Forbidden, "permission_denied",
			"The patient is not in your care. In an emergency, give a reason in "+web.EmergencyHeader+".")
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

// recordEmergency keeps the reason and tells those responsible for the patient.
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

// reachPresent is reach for a patient who may have been deleted since: then there is nothing to see.
func (a *api) reachPresent(c *web.Call, patientID string) error {
	if _, err := collections.FindPatient(c.App, patientID); err != nil {
		return fault.OrMissing(err)
	}
	return a.reach(c, patientID)
}

// team says whose care teams a list is confined to: "" for nobody's, else the caller's. A list about one patient is
// reached like that patient.
func (a *api) team(c *web.Call, patientID string) (userRecordID string, err error) {
	switch {
	case !a.confinedToTeams(c):
		return "", nil
	case patientID != "":
		return "", a.reach(c, patientID)
	}
	return c.Caller.RecordID, nil
}

// teamFor is team for a list whose filters are read: what is wrong with them is refused first.
func (a *api) teamFor(c *web.Call, q *web.Query, patientID string) (userRecordID string, err error) {
	if err := q.Err(); err != nil {
		return "", err
	}
	return a.team(c, patientID)
}

// confinedToTeams reports whether the caller sees the patients of the own care teams only.
func (a *api) confinedToTeams(c *web.Call) bool {
	return a.RestrictToCareTeam && authz.OnTeams(c.Caller.Role)
}
