package auth

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/validate"
)

// CaregiverRole is the role in the audit trail of a portal account that acts for another person.
const CaregiverRole = "caregiver"

// PortalAccess is a patient that a portal account may access.
type PortalAccess struct {
	PatientID   string
	Scope       authz.PortalScope
	CaregiverID int64 // of the access of a caregiver; 0 for the own record
}

// setPatients sets the patients that a portal user may access now: the user's own record first,
// then those the user helps.
func (c *Caller) setPatients(cares []collections.CaregiverAccess, now time.Time) {
	if c.Role != authz.Patient {
		return
	}
	c.Patients = nil
	if c.PatientID != "" {
		c.Patients = append(c.Patients, PortalAccess{PatientID: c.PatientID, Scope: authz.PortalSelf})
	}
	for _, care := range cares {
		if care.Patient != c.PatientID && (care.EndsAt == "" || now.Before(collections.ParseInstant(care.EndsAt))) {
			c.Patients = append(c.Patients, PortalAccess{care.Patient, authz.PortalScope(care.Scope), collections.Number(care.ID)})
		}
	}
	c.PatientID, c.Scope = "", ""
	if len(c.Patients) == 1 {
		c.PatientID, c.Scope = c.Patients[0].PatientID, c.Patients[0].Scope
	}
}

// DefaultPatient returns the patient of a portal request that names none: the own record, or the only one; "" for none.
func (c *Caller) DefaultPatient() string {
	if len(c.Patients) > 0 && (len(c.Patients) == 1 || c.Patients[0].Scope == authz.PortalSelf) {
		return c.Patients[0].PatientID
	}
	return ""
}

// ScopeFor returns the portal user's scope for a patient; "" for none.
func (c *Caller) ScopeFor(patientID string) authz.PortalScope {
	for _, access := range c.Patients {
		if access.PatientID == patientID {
			return access.Scope
		}
	}
	return ""
}

// Relationships are the relationships of a caregiver to the patient.
var Relationships = []string{
	"spouse", "partner", "parent", "child", "sibling", "grandparent", "grandchild", "relative", "friend", "neighbor", "guardian", "power_of_attorney", "other",
}

// maxCaregivers limits the caregivers of a patient, because each gets a mail.
const maxCaregivers = 10

// CaregiverBody gives an account access to another person's readings.
type CaregiverBody struct {
	Email        validate.String         `json:"email"`
	FirstName    validate.String         `json:"first_name"`
	LastName     validate.String         `json:"last_name"`
	Relationship validate.String         `json:"relationship"`
	Scope        validate.String         `json:"scope"`
	Until        validate.String         `json:"until"`
	Others       validate.UnknownMembers `json:",embed"`
}

// read checks the body. Until is the last day in the patient's zone.
func (b CaregiverBody) read(patientID string, zone *time.Location, now time.Time) (NewAccount, collections.CaregiverDraft, error) {
	c := validate.NewChecks()
	account := NewAccount{
		Email: FoldEmail(c.Text("email", b.Email, validate.Required(254).Identifier())), Role: authz.Patient,
		FirstName: c.Text("first_name", b.FirstName, validate.Optional(100)), LastName: c.Text("last_name", b.LastName, validate.Optional(100)),
	}
	if account.Email != "" && !validEmail(account.Email) {
		c.Reject("email", msgEmail)
	}
	d := collections.CaregiverDraft{
		PatientID: patientID, Relationship: c.Text("relationship", b.Relationship, validate.Required(30).OneOf(Relationships...)),
		Scope: c.Text("scope", b.Scope, validate.Required(10).OneOf(authz.CaregiverScopes...)), Until: c.Date("until", b.Until, false),
	}
	if d.Until != "" {
		d.EndsAt = collections.StartOfNextDay(collections.ParseDay(d.Until, zone))
		if !now.Before(d.EndsAt) {
			c.Reject("until", "Must be today or later.")
		}
	}
	c.RejectUnknown("", b.Others)
	local, _, _ := strings.Cut(account.Email, "@")
	if account.FirstName == "" { // an account has a name; its mail address is the only one known
		account.FirstName = truncateName(local)
	}
	if account.LastName == "" {
		account.LastName = truncateName(local)
	}
	return account, d, c.Err()
}

// GrantedCaregiver is an access and its account.
type GrantedCaregiver struct {
	Access *collections.Caregiver
	User   *collections.User
	// SentName is the name in the request that granted the access; "" for none, and in lists.
	SentName string
}

// AddCaregiver gives the account with an email address access to a patient's readings, and queues a
// mail to it. If there is no account, it creates one. Source: docs/decisions/users.md,
// "Caregivers".
func (e *Engine) AddCaregiver(ctx context.Context, app core.App, caller Caller, patient *collections.Patient, body CaregiverBody, zone *time.Location, from audit.Origin, now time.Time) (added GrantedCaregiver, err error) {
	ctx, done := withQueueTimeout(ctx)
	defer done()
	account, draft, err := body.read(patient.Id, zone, now)
	if err != nil {
		return added, err
	}
	if !patient.Active() {
		return added, fault.State("invalid_state", "The patient is archived. Unarchive the patient first.")
	}
	hash, err := e.hash(ctx, app, NewSecret()) // also for an existing account, so that the time does not tell whether there is one
	if err != nil {
		return added, err
	}
	draft.GrantedBy = caller.Email
	err = app.RunInTransaction(func(tx core.App) error {
		added, err = e.addCaregiver(tx, account, hash, draft, caller.Actor(from), now)
		return err
	})
	added.SentName = strings.TrimSpace(body.FirstName.Value + " " + body.LastName.Value)
	return added, err
}

func (e *Engine) addCaregiver(tx core.App, account NewAccount, hash string, d collections.CaregiverDraft, by audit.Actor, now time.Time) (added GrantedCaregiver, err error) {
	user, err := nilIfMissing(collections.FindUserByEmail(tx, account.Email))
	if err != nil {
		return added, err
	}
	if err := endExpired(tx, d.PatientID, now); err != nil {
		return added, err
	}
	if err := checkCaregiver(tx, user, d.PatientID); err != nil {
		return added, err
	}
	isNew := user == nil
	if isNew {
		account.MustChangePassword = true
		if user, err = account.store(tx, hash, by, now); err != nil {
			return added, err
		}
	}
	d.UserID = user.Id
	access, err := collections.AddCaregiver(tx, d, now)
	if err != nil {
		return added, err
	}
	entry := caregiverEntry(access, audit.CaregiverGrant, by)
	entry.Changes = audit.Changes{"email": {New: user.Email()}, "relationship": {New: d.Relationship}, "scope": {New: d.Scope}, "until": {New: d.Until}}
	if err := audit.Append(tx, entry, now); err != nil {
		return added, err
	}
	return GrantedCaregiver{Access: access, User: user}, e.inviteCaregiver(tx, user, isNew, now)
}

// inviteCaregiver queues the mail to a caregiver: a new account gets the link to set its password.
func (e *Engine) inviteCaregiver(tx core.App, user *collections.User, isNew bool, now time.Time) error {
	parameters := map[string]string{"email": user.Email(), "address": e.options.SignInURL}
	if !isNew {
		return notifications.QueueMail(tx, notifications.CaregiverAdded, user, parameters, now)
	}
	link, err := addResetToken(tx, user, e.options.ResetURL, purposeWelcome, welcomeLife, now)
	if err != nil {
		return err
	}
	parameters["link"] = link
	return notifications.QueueMail(tx, notifications.Welcome, user, parameters, now)
}

// endExpired ends the expired accesses to a patient, so that their accounts can be given a new one.
func endExpired(tx core.App, patientID string, now time.Time) error {
	open, err := collections.CaregiversOf(tx, patientID)
	if err != nil {
		return err
	}
	for _, access := range open {
		if !access.InForce(now) {
			if err := access.End(tx, string(audit.BySystem), access.EndsAt()); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCaregiver rejects an account that cannot be a caregiver of the patient; user is nil if the address
// has no account. The error does not distinguish staff addresses, because patients add caregivers
// too.
func checkCaregiver(tx core.App, user *collections.User, patientID string) error {
	open, err := collections.CaregiversOf(tx, patientID)
	switch {
	case err != nil:
		return err
	case user != nil && user.PatientID() == patientID:
		return fault.Field("email", "This is the patient's own account.")
	case user != nil && (authz.Role(user.Role()) != authz.Patient || !user.Active()):
		return fault.Field("email", "This address cannot be used for a caregiver. Use another one.")
	case user != nil && slices.ContainsFunc(open, func(c *collections.Caregiver) bool { return c.UserID() == user.Id }):
		return fault.Field("email", "This is a caregiver already. Remove the access first.")
	case len(open) >= maxCaregivers:
		return fault.State("invalid_state", "A patient can have "+strconv.Itoa(maxCaregivers)+" caregivers at most.")
	}
	return nil
}

// EndCaregiver revokes an access at once; an expired one is not found. A caregiver may end only the
// own access; any other is not found.
func EndCaregiver(app core.App, caller Caller, patientID string, number int64, from audit.Origin, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		access, err := collections.FindCaregiver(tx, patientID, number)
		if err != nil {
			return fault.OrMissing(err)
		}
		if !access.InForce(now) || caller.Role == authz.Patient && caller.Scope != authz.PortalSelf && access.UserID() != caller.RecordID {
			return fault.Missing()
		}
		user, err := collections.FindUser(tx, access.UserID())
		if err != nil {
			return err
		}
		if err := access.End(tx, caller.Email, now); err != nil {
			return err
		}
		entry := caregiverEntry(access, audit.CaregiverEnd, caller.Actor(from))
		entry.Changes = audit.Changes{"email": {Old: user.Email()}}
		return audit.Append(tx, entry, now)
	})
}

// Caregivers returns the accesses to a patient that are in force, oldest first. None is in force
// after the patient's death.
func Caregivers(app core.App, patient *collections.Patient, now time.Time) ([]GrantedCaregiver, error) {
	open, err := collections.CaregiversOf(app, patient.Id)
	if err != nil || patient.DeceasedAt() != "" {
		return nil, err
	}
	open = slices.DeleteFunc(open, func(c *collections.Caregiver) bool { return !c.InForce(now) })
	list := make([]GrantedCaregiver, len(open))
	for i, access := range open {
		user, err := collections.FindUser(app, access.UserID())
		if err != nil {
			return nil, err
		}
		list[i] = GrantedCaregiver{Access: access, User: user}
	}
	return list, nil
}

func caregiverEntry(access *collections.Caregiver, event audit.Event, by audit.Actor) audit.Entry {
	return audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceRelatedPerson, ResourceID: strconv.FormatInt(access.Number(), 10), PatientID: access.PatientID(),
	}
}
