package patients

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

const (
	maxMembers = 50
	msgMember  = "Must be the id of an active provider, nurse, medical assistant or clinical manager."
)

// careTeamRoles may be on a care team. Source: docs/decisions/patients.md, "Care team".
var careTeamRoles = []authz.Role{authz.Provider, authz.Nurse, authz.MA, authz.ClinicalManager}

// CareTeamBody is the body that sets a care team. Omitted members stay; a null list is empty.
type CareTeamBody struct {
	PrimaryProviderID validate.Integer                             `json:"primary_provider_id"`
	Members           validate.Field[[]validate.Field[MemberBody]] `json:"members"`
}

// MemberBody is one member of a [CareTeamBody].
type MemberBody struct {
	UserID validate.Integer `json:"user_id"`
	Role   validate.String  `json:"role"`
}

// CareTeamDraft is a validated [CareTeamBody].
type CareTeamDraft struct {
	setsProvider bool
	provider     string // record id, "" for none
	setsMembers  bool
	members      []memberDraft
}

type memberDraft struct{ user, role string }

// Read checks a body as far as possible without stored data.
func (b CareTeamBody) Read(c *validate.Checks) CareTeamDraft {
	d := CareTeamDraft{setsProvider: b.PrimaryProviderID.Sent(), setsMembers: b.Members.Sent()}
	if id := readNumber(c, "primary_provider_id", b.PrimaryProviderID, msgProvider); id > 0 {
		d.provider = collections.NumberID(id)
	}
	for name, item := range validate.Items(c, "members", b.Members, maxMembers, "Must be a list of members.") {
		if !item.Given() {
			c.Reject(name, msgObject)
			continue
		}
		if c.Integer(name+".user_id", item.Value.UserID, true) == nil {
			continue
		}
		m := memberDraft{role: c.Text(name+".role", item.Value.Role, validate.Optional(50))}
		if id := readNumber(c, name+".user_id", item.Value.UserID, msgMember); id > 0 {
			m.user = collections.NumberID(id)
		}
		if slices.ContainsFunc(d.members, func(other memberDraft) bool { return other.user == m.user && m.user != "" }) {
			c.Reject(name+".user_id", "Is on the list already.")
		}
		d.members = append(d.members, m)
	}
	return d
}

// CareTeam is a patient's primary provider and team members. It refuses to print the names.
type CareTeam struct {
	PrimaryProvider *Colleague // nil for none
	Members         []Colleague
}

// Colleague is one person of a [CareTeam].
type Colleague struct {
	UserID int64
	Name   phi.Text
	Role   string
}

// FindCareTeam returns the care team of a patient.
func FindCareTeam(app core.App, p *collections.Patient) (team CareTeam, err error) {
	if id := p.GetString(collections.PatientPrimaryProvider); id != "" {
		colleague, err := findColleague(app, id)
		if err != nil {
			return team, err
		}
		team.PrimaryProvider = &colleague
	}
	members, err := collections.CareTeam(app, p.Id)
	if err != nil {
		return team, err
	}
	for _, m := range members {
		colleague, err := findColleague(app, m.UserRecordID())
		if err != nil {
			return team, err
		}
		colleague.Role = m.Role()
		team.Members = append(team.Members, colleague)
	}
	return team, nil
}

func findColleague(app core.App, userID string) (Colleague, error) {
	user, err := collections.FindUser(app, userID)
	if err != nil {
		return Colleague{}, err
	}
	name := collections.UnreadableText
	if collections.Readable(user.ProxyRecord()) == nil {
		name = strings.TrimSpace(user.FirstName() + " " + user.LastName())
	}
	return Colleague{UserID: user.Number(), Name: phi.Text(name), Role: user.Role()}, nil
}

// SetCareTeam changes the care team of a patient who is not deleted, in one transaction with its audit entry. A user who cannot be a member
// is a validation fault. An omitted role is the user's own.
func SetCareTeam(app core.App, patientID string, d CareTeamDraft, by audit.Actor, now time.Time) (team CareTeam, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		p, err := collections.FindPatient(tx, patientID)
		if err != nil {
			return fault.OrMissing(err)
		}
		changes := audit.Changes{}
		if d.setsProvider && p.GetString(collections.PatientPrimaryProvider) != d.provider {
			changes["primary_provider_id"] = audit.Change{Old: p.PrimaryProviderID(), New: collections.Number(d.provider)}
			p.Set(collections.PatientPrimaryProvider, d.provider)
			if err := tx.Save(p); err != nil {
				return asFault(err)
			}
		}
		if d.setsMembers {
			if err := setMembers(tx, p.Id, d.members, changes, now); err != nil {
				return err
			}
		}
		if team, err = FindCareTeam(tx, p); err != nil || len(changes) == 0 {
			return err
		}
		return audit.Append(tx, audit.Entry{Event: audit.CareTeamUpdate, Actor: by, ResourceType: audit.ResourcePatient, ResourceID: p.Id, PatientID: p.Id, Changes: changes}, now)
	})
	return team, err
}

// setMembers replaces the members and records the changes.
func setMembers(tx core.App, patientID string, wanted []memberDraft, changes audit.Changes, now time.Time) error {
	current, err := collections.CareTeam(tx, patientID)
	if err != nil {
		return err
	}
	fields, roles := fault.Fields{}, make([]string, len(wanted))
	for i, m := range wanted {
		user, err := memberUser(tx, m.user)
		if err != nil {
			return err
		}
		if user == nil {
			fields.Add(fmt.Sprintf("members.%d.user_id", i), msgMember)
		} else if roles[i] = m.role; m.role == "" {
			roles[i] = user.Role()
		}
	}
	if err := fields.Err(); err != nil {
		return err
	}
	for _, member := range current {
		if slices.ContainsFunc(wanted, func(m memberDraft) bool { return m.user == member.UserRecordID() }) {
			continue
		}
		if err := tx.Delete(member); err != nil {
			return fmt.Errorf("remove a care-team member: %w", err)
		}
		changes["member."+publicUser(member.UserRecordID())] = audit.Change{Old: member.Role()}
	}
	for i, m := range wanted {
		at := slices.IndexFunc(current, func(member *collections.CareTeamMember) bool { return m.user == member.UserRecordID() })
		member, old := (*collections.CareTeamMember)(nil), any(nil)
		if at >= 0 {
			if member = current[at]; member.Role() == roles[i] {
				continue
			}
			old = member.Role()
		} else if member, err = collections.NewCareTeamMember(tx, patientID, m.user); err != nil {
			return err
		} else {
			collections.StampCreated(member.ProxyRecord(), now)
		}
		member.SetRole(roles[i])
		if err := tx.Save(member); err != nil {
			return fmt.Errorf("store a care-team member: %w", err)
		}
		changes["member."+publicUser(m.user)] = audit.Change{Old: old, New: roles[i]}
	}
	return nil
}

func publicUser(recordID string) string {
	return strconv.FormatInt(collections.Number(recordID), 10)
}

// memberUser returns the user if allowed on a care team, otherwise nil.
func memberUser(app core.App, userID string) (*collections.User, error) {
	user, err := collections.FindUser(app, userID)
	if collections.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !user.Active() || !slices.Contains(careTeamRoles, authz.Role(user.Role())) {
		return nil, nil
	}
	return user, nil
}

// GuardMember checks a care-team member before any writer stores it.
func GuardMember(app core.App, record *core.Record, now time.Time) error {
	member := collections.AsCareTeamMember(record)
	user, err := memberUser(app, member.UserRecordID())
	if err != nil {
		return err
	}
	if user == nil {
		return validation.Errors{"user": validation.NewError("validation_invalid_value", msgMember)}
	}
	if _, err := collections.FindPatient(app, member.PatientID()); collections.IsNotFound(err) {
		return validation.Errors{"patient": validation.NewError("validation_invalid_value", "There is no such patient.")}
	} else if err != nil {
		return err
	}
	if member.Role() == "" {
		member.SetRole(user.Role())
	}
	collections.StampCreated(record, now)
	return nil
}

// IsOnCareTeam reports whether a user (record id) is primary provider or care-team member of a patient.
// Source: docs/decisions/patients.md, "Care team".
func IsOnCareTeam(app core.App, patientID, userID string) (bool, error) {
	own, err := collections.PatientIDsOfTeam(app, userID, patientID)
	return len(own) > 0, err
}
