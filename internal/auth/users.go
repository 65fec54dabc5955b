package auth

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Reasons for which an administrator ends a user's sessions and push tokens.
const (
	reasonDeactivated = "deactivated"
	reasonRoleChange  = "role_change"
	reasonAdminLogout = "admin_logout"
)

// UserPatch changes an account. Omitted fields stay as they are; null clears a field that may be empty.
type UserPatch struct {
	FirstName  validate.String `json:"first_name"`
	LastName   validate.String `json:"last_name"`
	Role       validate.String `json:"role"`
	TimeZone   validate.String `json:"time_zone"`
	NPI        validate.String `json:"npi"`
	Taxonomy   validate.String `json:"taxonomy_code"`
	Credential validate.String `json:"credential"`
	Phone      validate.String `json:"phone"`
	PatientID  validate.String `json:"patient_id"`
	// CurrentPassword is the administrator's, for a change of the role without a fresh sign-in.
	CurrentPassword validate.String `json:"current_password"`
}

// OwnPatch holds the fields that users may change in their own account.
type OwnPatch struct {
	TimeZone validate.String `json:"time_zone"`
	Phone    validate.String `json:"phone"`
}

// columns returns the values of the fields that were sent, by column.
func (p UserPatch) columns() (map[string]string, error) {
	checks := validate.NewChecks()
	columns := map[string]string{}
	add := func(field validate.String, column string, read func() string) {
		if field.Sent() {
			columns[column] = read()
		}
	}
	add(p.FirstName, collections.UserFirstName, func() string { return checks.Text("first_name", p.FirstName, validate.Required(100)) })
	add(p.LastName, collections.UserLastName, func() string { return checks.Text("last_name", p.LastName, validate.Required(100)) })
	add(p.Role, collections.UserRole, func() string { return checks.Text("role", p.Role, validate.Required(30).OneOf(roleNames()...)) })
	add(p.TimeZone, collections.UserTimeZone, func() string { return checks.TimeZone("time_zone", p.TimeZone) })
	add(p.NPI, collections.UserNPI, func() string { return readNPI(checks, p.NPI) })
	add(p.Taxonomy, collections.UserTaxonomy, func() string { return readTaxonomy(checks, p.Taxonomy) })
	add(p.Credential, collections.UserCredential, func() string { return readCredential(checks, p.Credential) })
	add(p.Phone, collections.UserPhone, func() string { return checks.Phone("phone", p.Phone) })
	add(p.PatientID, collections.UserPatient, func() string { return checks.UUID("patient_id", p.PatientID, false) })
	return columns, checks.Err()
}

// UpdateUser changes an account. A new role requires reauthentication, takes effect with the next request and ends the sessions. The caller
// cannot remove the role from their own account or from the last administrator. Source: docs/decisions/users.md, "User management".
func (e *Engine) UpdateUser(ctx context.Context, app core.App, caller Caller, userID string, patch UserPatch, from audit.Origin, now time.Time) (*collections.User, error) {
	columns, err := patch.columns()
	if err != nil {
		return nil, err
	}
	if patch.Role.Given() {
		user, err := nilIfMissing(collections.FindUser(app, userID))
		if err != nil {
			return nil, err
		}
		if user != nil && user.Role() != columns[collections.UserRole] {
			if err := e.requireReauthentication(ctx, app, caller, PasswordProof{patch.CurrentPassword}, from, now); err != nil {
				return nil, err
			}
		}
	}
	return e.changeExistingUser(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		before, after := authz.Role(user.Role()), authz.Role(user.Role())
		if role, changed := columns[collections.UserRole]; changed {
			after = authz.Role(role)
		}
		if before == authz.Admin && after != authz.Admin {
			if refused, err := requireOtherAdministrator(tx, caller, user); refused != nil || err != nil {
				return refused, err
			}
		}
		if after != authz.Patient && columns[collections.UserPatient] == "" {
			columns[collections.UserPatient] = "" // only portal accounts are linked
		}
		if err := checkPatientLink(tx, after, columns[collections.UserPatient]); err != nil {
			return err, nil
		}
		if before != after {
			if _, err := RevokeAll(tx, user.Id, reasonRoleChange, now); err != nil {
				return nil, err
			}
		}
		if err := applyColumns(tx, user, columns, caller.Actor(from), now); err != nil || before == after {
			return nil, err
		}
		entry := userEntry(user, audit.UserRoleChange, caller.Actor(from))
		entry.Changes = audit.Changes{"role": {Old: string(before), New: string(after)}}
		return nil, audit.Append(tx, entry, now)
	})
}

// UpdateOwn changes the caller's own account.
func (e *Engine) UpdateOwn(app core.App, caller Caller, patch OwnPatch, from audit.Origin, now time.Time) (*collections.User, error) {
	columns, err := UserPatch{TimeZone: patch.TimeZone, Phone: patch.Phone}.columns()
	if err != nil {
		return nil, err
	}
	return e.changeExistingUser(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		return nil, applyColumns(tx, user, columns, caller.Actor(from), now)
	})
}

// applyColumns stores the changed columns and audits them. The caller audits a role change.
func applyColumns(tx core.App, user *collections.User, columns map[string]string, by audit.Actor, now time.Time) error {
	changes := audit.Changes{}
	for column, value := range columns {
		old := user.GetString(column)
		if old == value {
			continue
		}
		user.Set(column, value)
		if column != collections.UserRole {
			changes[column] = audit.Change{Old: phi.Text(old), New: phi.Text(value)}
		}
	}
	if err := saveUser(tx, user, now); err != nil || len(changes) == 0 {
		return err
	}
	entry := userEntry(user, audit.UserUpdate, by)
	entry.Changes = changes
	return audit.Append(tx, entry, now)
}

// changeExistingUser is changeUser for an id that may not exist. It returns the changed user.
func (e *Engine) changeExistingUser(app core.App, userID string, apply func(tx core.App, user *collections.User) (refused, err error)) (*collections.User, error) {
	var changed *collections.User
	err := e.changeUser(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		changed = user
		return apply(tx, user)
	})
	if collections.IsNotFound(err) {
		return nil, fault.Missing()
	}
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// requireOtherAdministrator refuses to remove an administrator who is the caller or the last active one.
func requireOtherAdministrator(tx core.App, caller Caller, user *collections.User) (refused, err error) {
	if user.Id == caller.RecordID {
		return fault.State("invalid_state", "Administrators cannot remove their own role or deactivate their own account."), nil
	}
	admins, err := collections.UserList(tx, collections.UserFilter{Role: string(authz.Admin), Active: new(true)})
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(admins, func(u *collections.User) bool { return u.Id != user.Id }) {
		return fault.State("invalid_state", "The last active administrator must stay."), nil
	}
	return nil, nil
}

// Deactivate disables an account: access tokens, sessions and push notifications end immediately.
func (e *Engine) Deactivate(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) (*collections.User, error) {
	return e.changeExistingUser(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		if !user.Active() {
			return fault.State("invalid_state", "The account is already inactive."), nil
		}
		if user.Id == caller.RecordID || authz.Role(user.Role()) == authz.Admin {
			if refused, err := requireOtherAdministrator(tx, caller, user); refused != nil || err != nil {
				return refused, err
			}
		}
		user.SetActive(false)
		user.RefreshTokenKey()
		if _, err := RevokeAll(tx, user.Id, reasonDeactivated, now); err != nil {
			return nil, err
		}
		if err := saveUser(tx, user, now); err != nil {
			return nil, err
		}
		return nil, audit.Append(tx, userEntry(user, audit.UserDeactivate, caller.Actor(from)), now)
	})
}

// Activate enables an account again.
func (e *Engine) Activate(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) (*collections.User, error) {
	return e.changeExistingUser(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		if user.Active() {
			return fault.State("invalid_state", "The account is already active."), nil
		}
		user.SetActive(true)
		if err := saveUser(tx, user, now); err != nil {
			return nil, err
		}
		return nil, audit.Append(tx, userEntry(user, audit.UserActivate, caller.Actor(from)), now)
	})
}

// Unlock ends a lockout and clears the failure counts. Source: docs/decisions/authentication.md, "Administrator notice and unlock".
func (e *Engine) Unlock(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) error {
	_, err := e.changeExistingUser(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		for _, key := range []string{e.sealer.LoginKey(FoldEmail(user.Email())), e.proofKey(user.Id)} {
			if err := collections.ClearLoginFailure(tx, key); err != nil {
				return nil, err
			}
		}
		return nil, audit.Append(tx, userEntry(user, audit.Unlock, caller.Actor(from)), now)
	})
	return err
}

// CurrentPasswordBody is an administrator's password, for requests that require reauthentication.
type CurrentPasswordBody struct {
	CurrentPassword validate.String `json:"current_password"`
}

// ResetTwoFactor turns off all second factors of another user who has lost them, passkeys included,
// after reauthentication. A user's own factors can be turned off only with both of them.
func (e *Engine) ResetTwoFactor(ctx context.Context, app core.App, caller Caller, userID string, body CurrentPasswordBody, from audit.Origin, now time.Time) error {
	if userID == caller.RecordID {
		return fault.State("invalid_state", "Your own second factor is turned off with your password and a code: auth/2fa/disable/.")
	}
	if err := e.requireReauthentication(ctx, app, caller, PasswordProof{body.CurrentPassword}, from, now); err != nil {
		return err
	}
	_, err := e.changeExistingUser(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		on, err := hasSecondFactor(tx, user)
		if err != nil {
			return nil, err
		}
		if !on {
			return fault.State("invalid_state", "Two-factor authentication is off."), nil
		}
		if err := removeAllPasskeys(tx, user, caller.Actor(from), now); err != nil {
			return nil, err
		}
		return nil, disableTwoFactor(tx, user, caller.Actor(from), now)
	})
	return err
}

// EndSessions ends all sessions of a user, including access tokens.
func (e *Engine) EndSessions(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) error {
	_, err := e.changeExistingUser(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		user.RefreshTokenKey()
		if err := saveUser(tx, user, now); err != nil {
			return nil, err
		}
		ended, err := RevokeAll(tx, user.Id, reasonAdminLogout, now)
		if err != nil {
			return nil, err
		}
		entry := userEntry(user, audit.Logout, caller.Actor(from))
		entry.Changes = audit.Changes{"sign_ins": {Old: ended, New: 0}}
		return nil, audit.Append(tx, entry, now)
	})
	return err
}

// SendReset mails a user a link to set a password. It counts toward the same hourly limit as the user's own requests.
func (e *Engine) SendReset(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) error {
	_, err := e.changeExistingUser(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		if !user.Active() {
			return fault.State("invalid_state", "The account is inactive."), nil
		}
		if unconfirmed, err := isUnconfirmed(tx, user); err != nil {
			return nil, err
		} else if unconfirmed {
			return fault.State("invalid_state", "The identity provider has not confirmed this address: the account has no password here."), nil
		}
		return nil, queueReset(tx, FoldEmail(user.Email()), userEntry(user, audit.PasswordResetRequest, caller.Actor(from)), now)
	})
	return err
}

// UserQuery filters and orders users.
type UserQuery struct {
	Role          string
	Not           string // a role to exclude
	Active        *bool
	Search        string // part of the name or address; several words must all match
	Ordering      string // one of UserOrders
	Offset, Limit int
}

// UserOrders lists the orderings, the default first; "-" means descending.
var UserOrders = []string{"last_name", "-last_name", "email", "-email", "role", "-role", "created_at", "-created_at", "last_login", "-last_login"}

// Users returns one page of accounts and the total count. Names are encrypted, so the search and the ordering run in memory. Accounts that
// cannot be decrypted count as matches of every search, because their names are unknown.
func Users(app core.App, q UserQuery) (page []*collections.User, total, unreadable int, err error) {
	all, err := collections.UserList(app, collections.UserFilter{Role: q.Role, Active: q.Active})
	if err != nil {
		return nil, 0, 0, err
	}
	all, unreadable = collections.ReadableOnly(all)
	words := strings.Fields(strings.ToLower(q.Search))
	type entry struct {
		user *collections.User
		key  string
	}
	var found []entry
	column, descending := strings.CutPrefix(q.Ordering, "-")
	if !descending {
		column = q.Ordering
	}
	for _, user := range all {
		if q.Not != "" && user.Role() == q.Not {
			continue
		}
		first, last := user.FirstName(), user.LastName()
		text := strings.ToLower(first + " " + last + " " + first + "\n" + user.Email())
		if slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			continue
		}
		found = append(found, entry{user, orderKey(user, column)})
	}
	slices.SortStableFunc(found, func(a, b entry) int { // the input is ordered by number, which breaks ties
		if descending {
			return strings.Compare(b.key, a.key)
		}
		return strings.Compare(a.key, b.key)
	})
	start, end := min(q.Offset, len(found)), min(q.Offset+q.Limit, len(found))
	for _, e := range found[start:end] {
		page = append(page, e.user)
	}
	return page, len(found) + unreadable, unreadable, nil
}

func orderKey(user *collections.User, column string) string {
	switch column {
	case "email":
		return user.Email()
	case "role":
		return user.Role()
	case "created_at":
		return collections.FormatInstant(user.CreatedAt())
	case "last_login":
		return collections.FormatInstant(user.LastLoginAt())
	}
	return strings.ToLower(user.LastName() + "\x00" + user.FirstName())
}

// LockoutEnds returns the end of the lockout of each locked account, by record id.
func (e *Engine) LockoutEnds(app core.App, users []*collections.User, now time.Time) (map[string]time.Time, error) {
	keys := make([]string, len(users))
	for i, user := range users {
		keys[i] = e.sealer.LoginKey(FoldEmail(user.Email()))
	}
	byKey, err := collections.LockedAddresses(app, keys, now)
	if err != nil {
		return nil, err
	}
	locks := map[string]time.Time{}
	for i, user := range users {
		if until, isLocked := byKey[keys[i]]; isLocked {
			locks[user.Id] = until
		}
	}
	return locks, nil
}
