package notifications

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
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
		named, err := r.find(dbx.HashExp{"id": a.User})
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
	return func(r recipients, _ *collections.Announcement) ([]string, error) { return r.find(inRoles(wanted)) }
}

// careTeam is who cares for the patient; all clinical managers when nobody does.
func (r recipients) careTeam(a *collections.Announcement) ([]string, error) {
	team, err := r.find(inRoles(clinicalRoles), dbx.NewExp(`(id IN (SELECT user FROM care_team_members WHERE patient = {:patient})
		OR id = (SELECT primary_provider FROM patients WHERE id = {:patient}))`, dbx.Params{"patient": a.Patient}))
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
	return r.find(inRoles([]access.Role{access.ClinicalManager}))
}

// responsible is who has an escalation and the patient's primary provider; the clinical managers too while nobody has it or nobody
// answers. Somebody always hears of it: where there is nobody, the administrators do.
func (r recipients) responsible(a *collections.Announcement) ([]string, error) {
	assignees, err := r.find(inRoles(clinicalRoles),
		dbx.NewExp("email = (SELECT assigned_to FROM escalations WHERE id = {:id}) AND email != ''", dbx.Params{"id": a.Escalation}))
	if err != nil {
		return nil, err
	}
	people, err := r.find(inRoles(clinicalRoles),
		dbx.NewExp("id = (SELECT primary_provider FROM patients WHERE id = {:patient})", dbx.Params{"patient": a.Patient}))
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
		return r.find(inRoles([]access.Role{access.Admin}))
	}
	return people, nil
}

// portal are the accounts of the patient.
func (r recipients) portal(patientID string) ([]string, error) {
	if patientID == "" {
		return nil, nil
	}
	return r.find(inRoles([]access.Role{access.Patient}), dbx.HashExp{"patient": patientID})
}

func (r recipients) find(conditions ...dbx.Expression) (ids []string, err error) {
	where := append(conditions, dbx.NewExp("is_active = TRUE"))
	if err := r.app.DB().Select("id").From(collections.Users).Where(dbx.And(where...)).OrderBy("id").Column(&ids); err != nil {
		return nil, fmt.Errorf("find people: %w", err)
	}
	return ids, nil
}

func inRoles(wanted []access.Role) dbx.Expression {
	list := make([]any, len(wanted))
	for i, role := range wanted {
		list[i] = string(role)
	}
	return dbx.In("role", list...)
}
