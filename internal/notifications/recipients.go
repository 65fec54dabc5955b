package notifications

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/phi"
)

// clinicalRoles are those who may hear of a patient's state.
var clinicalRoles = []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA}

// recipients finds people. All it returns have an account that may be used.
type recipients struct {
	app core.App
	// found is who was found before, for the announcements of one group: most ask for the same. Nil remembers nobody.
	found map[string][]string
}

// of are the people for an announcement, each once, in the order of their numbers; errNobody when there is nobody who may be told.
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
	if !personal[Kind(a.Kind)] {
		if ids, err = r.orAdministrators(ids); err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			return nil, errNobody
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

func nobodyElse(recipients, *collections.Announcement) ([]string, error) { return nil, nil }

// roles are all who have one of the roles.
func roles(wanted ...authz.Role) audience {
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
	r := recipients{app: tx}
	team, err := r.careTeam(&collections.Announcement{Patient: patientID})
	if err == nil {
		team, err = r.orAdministrators(team)
	}
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
	return r.find("", "", authz.ClinicalManager)
}

// responsible is who has an escalation and the patient's primary provider; the clinical managers too while nobody has it or nobody
// answers.
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
	return people, nil
}

// workers are who is responsible for an escalation, and who began to work on it.
func (r recipients) workers(a *collections.Announcement) ([]string, error) {
	people, err := r.responsible(a)
	if err != nil {
		return nil, err
	}
	starters, err := r.find(collections.StarterOf, a.Escalation, clinicalRoles...)
	return append(people, starters...), err
}

// supervisors are the workers of an escalation, and the clinical managers.
func (r recipients) supervisors(a *collections.Announcement) ([]string, error) {
	people, err := r.workers(a)
	if err != nil {
		return nil, err
	}
	managers, err := r.managers(a)
	return append(people, managers...), err
}

// everyLevel are the supervisors of an escalation, and the administrators.
func (r recipients) everyLevel(a *collections.Announcement) ([]string, error) {
	people, err := r.supervisors(a)
	if err != nil {
		return nil, err
	}
	admins, err := r.find("", "", authz.Admin)
	return append(people, admins...), err
}

// portal are the accounts of the patient.
func (r recipients) portal(patientID string) ([]string, error) {
	if patientID == "" {
		return nil, nil
	}
	return r.find(collections.PortalOf, patientID, authz.Patient)
}

// patient is the patient, where the patient has an account.
func (r recipients) patient(a *collections.Announcement) ([]string, error) {
	return r.portal(a.Patient)
}

// find are those with one of the roles and with a tie to a patient or an escalation; "" asks for none.
func (r recipients) find(tie collections.UserRelation, to string, roles ...authz.Role) ([]string, error) {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = string(role)
	}
	asked := strings.Join(append(names, string(tie), to), "\x00")
	if people, known := r.found[asked]; known {
		return slices.Clone(people), nil
	}
	people, err := collections.ActiveUsers(r.app, names, tie, to)
	if err == nil && r.found != nil {
		r.found[asked] = slices.Clone(people)
	}
	return people, err
}

// EmergencyAccess is the type of notices that somebody opened a patient outside their care teams.
const EmergencyAccess = "emergency_access"

// NotifyOfEmergencyAccess tells the patient's primary provider and every active clinical manager, or else the administrators, who opened
// the patient and why. The same person and patient are told once a day, however many requests it takes. Source: docs/decisions/security.md, "Emergency access".
func NotifyOfEmergencyAccess(tx core.App, patientID, actorEmail string, reason phi.Text, now time.Time) error {
	patient, err := collections.FindPatientAnyState(tx, patientID)
	if collections.IsNotFound(err) {
		return nil // nobody's record was opened
	}
	if err != nil {
		return err
	}
	r := recipients{app: tx}
	provider, err := r.find(collections.PrimaryProviderOf, patientID, clinicalRoles...)
	if err != nil {
		return err
	}
	managers, err := r.managers(nil)
	if err != nil {
		return err
	}
	told, err := r.orAdministrators(append(provider, managers...))
	if err != nil {
		return err
	}
	notice := Notice{
		Channel: "alerts", Type: EmergencyAccess, Severity: "warning", Title: "Emergency access to a patient",
		Body: actorEmail + " opened the record of " + collections.TextOf(patient.ProxyRecord(), collections.PatientFirstName) + " " + collections.TextOf(patient.ProxyRecord(), collections.PatientLastName) +
			" (" + patient.MRN() + ") in an emergency: " + reason.Reveal(),
		DedupeKey: "emergency/" + patientID + "/" + actorEmail + "/" + now.UTC().Format(time.DateOnly),
	}
	if len(told) == 0 {
		return storeForAdministrators(tx, notice, now)
	}
	for _, userID := range told { // who is both is told once, for the key
		if err := Notify(tx, userID, notice, now); err != nil {
			return err
		}
	}
	return nil
}

// NotifyOfBrokenAudit tells every active administrator that the audit chain does not hold from a row on.
// Source: docs/decisions/security.md, "Hash chain".
func NotifyOfBrokenAudit(app core.App, firstInvalidID int64, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		return NotifyAdministrators(tx, Notice{
			Channel: "alerts", Type: SystemHealth, Severity: "critical", Title: "The audit trail does not verify",
			Body: fmt.Sprintf("The daily check found that the audit trail was changed at entry %d.", firstInvalidID),
		}, AuditBroken, now)
	})
}

// NotifyAdministrators puts a notice on the list of every active administrator and a mail into their mailboxes. Where there is none the notice
// waits for the first.
func NotifyAdministrators(tx core.App, notice Notice, mail Template, now time.Time) error {
	admins, err := collections.UserList(tx, collections.UserFilter{Role: string(authz.Admin), Active: new(true)})
	if err != nil {
		return err
	}
	if len(admins) == 0 {
		return storeForAdministrators(tx, notice, now)
	}
	for _, admin := range admins {
		if err := Notify(tx, admin.Id, notice, now); err != nil {
			return err
		}
		if err := Queue(tx, mail, admin, nil, now); err != nil {
			return err
		}
	}
	return nil
}
