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

// clinicalRoles may receive notifications about a patient's state.
var clinicalRoles = []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA}

// recipients finds the recipients of announcements among active users.
type recipients struct {
	app core.App
	// cache holds the results of queries for the announcements of one group, most of which repeat. Nil disables the cache.
	cache map[string][]string
}

// forAnnouncement returns the recipients of an announcement, each once, in record order. It returns errNoAudience if there is none.
func (r recipients) forAnnouncement(a *collections.Announcement, m kindRule) ([]string, error) {
	ids, err := m.audience(r, a)
	if err != nil {
		return nil, fmt.Errorf("find recipients: %w", err)
	}
	if a.User != "" {
		named, err := collections.ActiveUserIDs(r.app, a.User)
		if err != nil {
			return nil, err
		}
		ids = append(ids, named...)
	}
	if !personalKinds[Kind(a.Kind)] {
		if ids, err = r.orAdministrators(ids); err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			return nil, errNoAudience
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// namedUserOnly adds no recipients to the named user of an announcement.
func namedUserOnly(recipients, *collections.Announcement) ([]string, error) { return nil, nil }

// roles returns all users with one of the roles.
func roles(wanted ...authz.Role) audience {
	return func(r recipients, _ *collections.Announcement) ([]string, error) {
		return r.usersWith("", "", wanted...)
	}
}

// careTeam returns the patient's care team, or all clinical managers if it is empty.
func (r recipients) careTeam(a *collections.Announcement) ([]string, error) {
	team, err := r.usersWith(collections.OnTeamOf, a.Patient, clinicalRoles...)
	if err != nil || len(team) > 0 {
		return team, err
	}
	return r.managers(a)
}

// QueueMailForCareTeam queues a mail for each recipient of a patient's alerts. The mail contains no names, so it takes no parameters.
func QueueMailForCareTeam(tx core.App, template Template, patientID string, now time.Time) error {
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
		if err := QueueMail(tx, template, user, nil, now); err != nil {
			return err
		}
	}
	return nil
}

func (r recipients) managers(*collections.Announcement) ([]string, error) {
	return r.usersWith("", "", authz.ClinicalManager)
}

// responsible returns the assignee of an escalation and the patient's primary provider, and the clinical managers if the escalation is unassigned or
// overdue.
func (r recipients) responsible(a *collections.Announcement) ([]string, error) {
	assignees, err := r.usersWith(collections.AssigneeOf, a.Escalation, clinicalRoles...)
	if err != nil {
		return nil, err
	}
	people, err := r.usersWith(collections.PrimaryProviderOf, a.Patient, clinicalRoles...)
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

// workers returns the users responsible for an escalation, and the one who started work on it.
func (r recipients) workers(a *collections.Announcement) ([]string, error) {
	people, err := r.responsible(a)
	if err != nil {
		return nil, err
	}
	starters, err := r.usersWith(collections.StarterOf, a.Escalation, clinicalRoles...)
	return append(people, starters...), err
}

// workersAndManagers returns the workers of an escalation and the clinical managers.
func (r recipients) workersAndManagers(a *collections.Announcement) ([]string, error) {
	people, err := r.workers(a)
	if err != nil {
		return nil, err
	}
	managers, err := r.managers(a)
	return append(people, managers...), err
}

// allLevels returns the supervisors of an escalation and the administrators.
func (r recipients) allLevels(a *collections.Announcement) ([]string, error) {
	people, err := r.workersAndManagers(a)
	if err != nil {
		return nil, err
	}
	admins, err := r.usersWith("", "", authz.Admin)
	return append(people, admins...), err
}

// portal returns the portal accounts of the patient.
func (r recipients) portal(patientID string) ([]string, error) {
	if patientID == "" {
		return nil, nil
	}
	return r.usersWith(collections.PortalOf, patientID, authz.Patient)
}

// patient returns the portal accounts of the announcement's patient.
func (r recipients) patient(a *collections.Announcement) ([]string, error) {
	return r.portal(a.Patient)
}

// usersWith returns active users with one of the roles and a relation to a patient or an escalation; "" requires no relation.
func (r recipients) usersWith(tie collections.UserRelation, to string, roles ...authz.Role) ([]string, error) {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = string(role)
	}
	query := strings.Join(append(names, string(tie), to), "\x00")
	if people, known := r.cache[query]; known {
		return slices.Clone(people), nil
	}
	people, err := collections.ActiveUsers(r.app, names, tie, to)
	if err == nil && r.cache != nil {
		r.cache[query] = slices.Clone(people)
	}
	return people, err
}

// EmergencyAccess is the type of notices about break-glass access to a patient.
const EmergencyAccess = "emergency_access"

// NotifyOfEmergencyAccess notifies the patient's primary provider and all clinical managers, or else the administrators, of a break-glass access and
// its reason. It notifies once a day per user and patient, regardless of the number of requests. Source: docs/decisions/security.md, "Emergency
// access".
func NotifyOfEmergencyAccess(tx core.App, patientID, actorEmail string, reason phi.Text, now time.Time) error {
	patient, err := collections.FindPatientAnyState(tx, patientID)
	if collections.IsNotFound(err) {
		return nil // no record was opened
	}
	if err != nil {
		return err
	}
	r := recipients{app: tx}
	provider, err := r.usersWith(collections.PrimaryProviderOf, patientID, clinicalRoles...)
	if err != nil {
		return err
	}
	managers, err := r.managers(nil)
	if err != nil {
		return err
	}
	notified, err := r.orAdministrators(append(provider, managers...))
	if err != nil {
		return err
	}
	notice := Notice{
		Channel: "alerts", Type: EmergencyAccess, Severity: "warning", Title: "Emergency access to a patient",
		Body: actorEmail + " opened the record of " + collections.TextOf(patient.ProxyRecord(), collections.PatientFirstName) + " " + collections.TextOf(patient.ProxyRecord(), collections.PatientLastName) +
			" (" + patient.MRN() + ") in an emergency: " + reason.Reveal(),
		DedupeKey: "emergency/" + patientID + "/" + actorEmail + "/" + now.UTC().Format(time.DateOnly),
	}
	if len(notified) == 0 {
		return storeForAdministrators(tx, notice, now)
	}
	for _, userID := range notified { // the dedupe key notifies a manager who is also the provider once
		if err := Notify(tx, userID, notice, now); err != nil {
			return err
		}
	}
	return nil
}

// NotifyOfBrokenAudit notifies every administrator that the audit chain is broken from a row on. Source: docs/decisions/security.md, "Hash chain".
func NotifyOfBrokenAudit(app core.App, firstInvalidID int64, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		return NotifyAdministrators(tx, Notice{
			Channel: "alerts", Type: SystemHealth, Severity: "critical", Title: "The audit trail does not verify",
			Body: fmt.Sprintf("The daily check found that the audit trail was changed at entry %d.", firstInvalidID),
		}, AuditBroken, now)
	})
}

// NotifyOfProgramAccess notifies administrators that a person created or changed a program's
// access, which outlives a stolen sign-in. what describes the change. Source: ASVS 5.0, 6.3.7.
func NotifyOfProgramAccess(tx core.App, what string, now time.Time) error {
	return NotifyAdministrators(tx, Notice{
		Channel: "alerts", Type: SystemHealth, Severity: "warning", Title: "The access of a program was changed", Body: what,
	}, ProgramAccess, now)
}

// NotifyAdministrators adds a notice to the list of every active administrator and queues a mail to each. Without an administrator the notice waits
// for the first.
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
		if err := QueueMail(tx, mail, admin, nil, now); err != nil {
			return err
		}
	}
	return nil
}
