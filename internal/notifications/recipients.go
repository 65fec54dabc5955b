package notifications

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
)

// clinicalRoles are those who may hear of a patient's state.
var clinicalRoles = []access.Role{access.Admin, access.ClinicalManager, access.Provider, access.Nurse, access.MA}

// recipients finds people. All it returns have an account that may be used.
type recipients struct{ app core.App }

// of are the people for an announcement, each once, in the order of their numbers.
func (r recipients) of(a *collections.Announcement, m meaning) ([]string, error) {
	ids, err := m.audience(r, a)
	if err != nil {
		return nil, fmt.Errorf("find who is to hear: %w", err)
	}
	if a.User != "" {
		named, err := collections.ActiveUser(r.app, a.User)
		if err != nil {
			return nil, err
		}
		ids = append(ids, named...)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

func nobodyElse(recipients, *collections.Announcement) ([]string, error) { return nil, nil }

// roles are all who have one of the roles.
func roles(wanted ...access.Role) audience {
	return func(r recipients, _ *collections.Announcement) ([]string, error) { return r.find("", "", wanted...) }
}

// careTeam is who cares for the patient; all clinical managers when nobody does.
func (r recipients) careTeam(a *collections.Announcement) ([]string, error) {
	team, err := r.find(collections.OnTeamOf, a.Patient, clinicalRoles...)
	if err != nil || len(team) > 0 {
		return team, err
	}
	return r.managers(a)
}

// QueueForCareTeam puts a mail for everybody who hears of a patient's alerts into the outbox. It names nobody, so it takes no parameters.
func QueueForCareTeam(tx core.App, template Template, patientID string, now time.Time) error {
	team, err := recipients{tx}.careTeam(&collections.Announcement{Patient: patientID})
	if err != nil {
		return err
	}
	for _, id := range team {
		user, err := collections.FindUser(tx, id)
		if err != nil {
			return err
		}
		if err := Queue(tx, template, user, nil, now); err != nil {
			return err
		}
	}
	return nil
}

func (r recipients) managers(*collections.Announcement) ([]string, error) {
	return r.find("", "", access.ClinicalManager)
}

// responsible is who has an escalation and the patient's primary provider; the clinical managers too while nobody has it or nobody
// answers. Somebody always hears of it: where there is nobody, the administrators do.
func (r recipients) responsible(a *collections.Announcement) ([]string, error) {
	assignees, err := r.find(collections.AssigneeOf, a.Escalation, clinicalRoles...)
	if err != nil {
		return nil, err
	}
	people, err := r.find(collections.PrimaryProviderOf, a.Patient, clinicalRoles...)
	if err != nil {
		return nil, err
	}
	people = append(people, assignees...)
	if len(assignees) == 0 && a.User == "" || Kind(a.Kind) == EscalationOverdue {
		managers, err := r.managers(a)
		if err != nil {
			return nil, err
		}
		people = append(people, managers...)
	}
	if len(people) == 0 && a.User == "" {
		return r.find("", "", access.Admin)
	}
	return people, nil
}

// portal are the accounts of the patient.
func (r recipients) portal(patientID string) ([]string, error) {
	if patientID == "" {
		return nil, nil
	}
	return r.find(collections.PortalOf, patientID, access.Patient)
}

// find are those with one of the roles and with a tie to a patient or an escalation; "" asks for none.
func (r recipients) find(tie collections.Tie, to string, roles ...access.Role) ([]string, error) {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = string(role)
	}
	return collections.ActiveUsers(r.app, names, tie, to)
}
