package auth

import (
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

// Why sessions and push tokens of a user were ended by an administrator.
const (
	becauseDeactivated = "deactivated"
	becauseRole        = "role_change"
	becauseAdmin       = "admin_logout"
)

// UserPatch changes an account; fields that are left out stay. null empties what may be empty.
type UserPatch struct {
	FirstName validate.String `json:"first_name"`
	LastName  validate.String `json:"last_name"`
	Role      validate.String `json:"role"`
	TimeZone  validate.String `json:"time_zone"`
	NPI       validate.String `json:"npi"`
	Taxonomy  validate.String `json:"taxonomy_code"`
	Phone     validate.String `json:"phone"`
	PatientID validate.String `json:"patient_id"`
}

// OwnPatch is what people change of themselves.
type OwnPatch struct {
	TimeZone validate.String `json:"time_zone"`
	Phone    validate.String `json:"phone"`
}

// columns reads the fields that were sent, by column.
func (p UserPatch) columns() (map[string]string, error) {
	checks := validate.NewChecks()
	columns := map[string]string{}
	take := func(field validate.String, column string, read func() string) {
		if field.Sent() {
			columns[column] = read()
		}
	}
	take(p.FirstName, collections.UserFirstName, func() string { return checks.Text("first_name", p.FirstName, validate.Required(100)) })
	take(p.LastName, collections.UserLastName, func() string { return checks.Text("last_name", p.LastName, validate.Required(100)) })
	take(p.Role, collections.UserRole, func() string { return checks.Text("role", p.Role, validate.Required(30).OneOf(roleNames()...)) })
	take(p.TimeZone, collections.UserTimeZone, func() string { return checks.TimeZone("time_zone", p.TimeZone) })
	take(p.NPI, collections.UserNPI, func() string { return readNPI(checks, p.NPI) })
	take(p.Taxonomy, collections.UserTaxonomy, func() string { return readTaxonomy(checks, p.Taxonomy) })
	take(p.Phone, collections.UserPhone, func() string { return checks.Phone("phone", p.Phone) })
	take(p.PatientID, collections.UserPatient, func() string { return checks.UUID("patient_id", p.PatientID, false) })
	return columns, checks.Err()
}

// UpdateUser changes an account. A new role holds from the next request on, and the sign-ins end. Nobody takes the role from themself or from
// the last administrator. Source: docs/decisions/users.md, "User management".
func (e *Engine) UpdateUser(app core.App, caller Caller, userID string, patch UserPatch, from audit.Origin, now time.Time) (*collections.User, error) {
	columns, err := patch.columns()
	if err != nil {
		return nil, err
	}
	return e.manage(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		before, after := authz.Role(user.Role()), authz.Role(user.Role())
		if role, changed := columns[collections.UserRole]; changed {
			after = authz.Role(role)
		}
		if before == authz.Admin && after != authz.Admin {
			if refused, err := leavesAnAdministrator(tx, caller, user); refused != nil || err != nil {
				return refused, err
			}
		}
		if after != authz.Patient && columns[collections.UserPatient] == "" {
			columns[collections.UserPatient] = "" // nobody else is linked
		}
		if err := checkPatientLink(tx, after, columns[collections.UserPatient]); err != nil {
			return err, nil
		}
		if before != after {
			if _, err := RevokeAll(tx, user.Id, becauseRole, now); err != nil {
				return nil, err
			}
		}
		if err := applyColumns(tx, user, columns, caller.Actor(from), now); err != nil || before == after {
			return nil, err
		}
		entry := about(user, audit.UserRoleChange, caller.Actor(from))
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
	return e.manage(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		return nil, applyColumns(tx, user, columns, caller.Actor(from), now)
	})
}

// applyColumns stores and records what is new, the role apart.
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
	if err := save(tx, user, now); err != nil || len(changes) == 0 {
		return err
	}
	entry := about(user, audit.UserUpdate, by)
	entry.Changes = changes
	return audit.Append(tx, entry, now)
}

// manage is change for a user who may not exist, and returns them as they are then.
func (e *Engine) manage(app core.App, userID string, apply func(tx core.App, user *collections.User) (refused, err error)) (*collections.User, error) {
	var changed *collections.User
	err := e.change(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
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

// leavesAnAdministrator refuses to take an administrator away when it is the caller or the last active one.
func leavesAnAdministrator(tx core.App, caller Caller, user *collections.User) (refused, err error) {
	if user.Id == caller.RecordID {
		return fault.State("invalid_state", "Administrators cannot take their own role or account away."), nil
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

// Deactivate ends an account: tokens, sign-ins and pushes stop at once.
func (e *Engine) Deactivate(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) (*collections.User, error) {
	return e.manage(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		if !user.Active() {
			return fault.State("invalid_state", "The account is already inactive."), nil
		}
		if user.Id == caller.RecordID || authz.Role(user.Role()) == authz.Admin {
			if refused, err := leavesAnAdministrator(tx, caller, user); refused != nil || err != nil {
				return refused, err
			}
		}
		user.SetActive(false)
		user.RefreshTokenKey()
		if _, err := RevokeAll(tx, user.Id, becauseDeactivated, now); err != nil {
			return nil, err
		}
		if err := save(tx, user, now); err != nil {
			return nil, err
		}
		return nil, audit.Append(tx, about(user, audit.UserDeactivate, caller.Actor(from)), now)
	})
}

// Activate lets an account in again.
func (e *Engine) Activate(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) (*collections.User, error) {
	return e.manage(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		if user.Active() {
			return fault.State("invalid_state", "The account is already active."), nil
		}
		user.SetActive(true)
		if err := save(tx, user, now); err != nil {
			return nil, err
		}
		return nil, audit.Append(tx, about(user, audit.UserActivate, caller.Actor(from)), now)
	})
}

// Unlock ends a lock at once and forgets the failures. Source: docs/decisions/authentication.md, "Administrator notice and unlock".
func (e *Engine) Unlock(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) error {
	_, err := e.manage(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		for _, key := range []string{e.sealer.LoginKey(FoldEmail(user.Email())), e.proofKey(user.Id)} {
			if err := collections.ClearLoginFailure(tx, key); err != nil {
				return nil, err
			}
		}
		return nil, audit.Append(tx, about(user, audit.Unlock, caller.Actor(from)), now)
	})
	return err
}

// ResetTwoFactor turns off every second factor of somebody who has lost theirs, passkeys too.
func (e *Engine) ResetTwoFactor(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) error {
	_, err := e.manage(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		on, err := hasSecondFactor(tx, user)
		if err != nil {
			return nil, err
		}
		if !on {
			return fault.State("invalid_state", "Two-factor authentication is off."), nil
		}
		if err := removePasskeys(tx, user, caller.Actor(from), now); err != nil {
			return nil, err
		}
		return nil, turnOff(tx, user, caller.Actor(from), now)
	})
	return err
}

// EndSessions signs a user out everywhere, access tokens included.
func (e *Engine) EndSessions(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) error {
	_, err := e.manage(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		user.RefreshTokenKey()
		if err := save(tx, user, now); err != nil {
			return nil, err
		}
		ended, err := RevokeAll(tx, user.Id, becauseAdmin, now)
		if err != nil {
			return nil, err
		}
		entry := about(user, audit.Logout, caller.Actor(from))
		entry.Changes = audit.Changes{"sign_ins": {Old: ended, New: 0}}
		return nil, audit.Append(tx, entry, now)
	})
	return err
}

// SendReset mails a user a link to set a password, under the limits of those who ask themselves.
func (e *Engine) SendReset(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) error {
	_, err := e.manage(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		if !user.Active() {
			return fault.State("invalid_state", "The account is inactive."), nil
		}
		return nil, queueReset(tx, FoldEmail(user.Email()), about(user, audit.PasswordResetRequest, caller.Actor(from)), now)
	})
	return err
}

// UserQuery chooses and orders users.
type UserQuery struct {
	Role          string
	Not           string // a role to leave out
	Active        *bool
	Search        string // part of the name or address; several words must all match
	Ordering      string // one of UserOrders
	Offset, Limit int
}

// UserOrders are the orders of a list of users, the default first; "-" turns one round.
var UserOrders = []string{"last_name", "-last_name", "email", "-email", "role", "-role", "created_at", "-created_at", "last_login", "-last_login"}

// Users lists accounts: one page, and how many there are. Names are encrypted, so they are searched and ordered here. Accounts that cannot be
// read belong to every search: nobody knows what they are called.
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
	slices.SortStableFunc(found, func(a, b entry) int { // they come by number, which breaks ties
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
		return collections.Instant(user.CreatedAt())
	case "last_login":
		return collections.Instant(user.LastLoginAt())
	}
	return strings.ToLower(user.LastName() + "\x00" + user.FirstName())
}

// Locks says until when accounts are locked, by record id; those that are not are left out.
func (e *Engine) Locks(app core.App, users []*collections.User, now time.Time) (map[string]time.Time, error) {
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
