package routes

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
)

// registeredView answers a registration.
type registeredView struct {
	ID        int64   `json:"id"`
	Email     string  `json:"email"`
	FirstName string  `json:"first_name"`
	LastName  string  `json:"last_name"`
	Role      string  `json:"role"`
	IsActive  bool    `json:"is_active"`
	CreatedAt *string `json:"created_at"`
}

func (a *api) register(c *call) error {
	var body auth.RegisterBody
	if err := c.decode(&body); err != nil {
		return err
	}
	user, err := a.Auth.Register(c.Request.Context(), c.App, body, c.actor(), c.Now)
	if err != nil {
		return err
	}
	return c.created(registeredView{
		user.Number(), user.Email(), user.FirstName(), user.LastName(), user.Role(), user.Active(),
		instantOrNull(user.CreatedAt()),
	})
}

// userView is an account as administrators see it.
type userView struct {
	profileView
	PatientID   *string `json:"patient_id"`
	LockedUntil *string `json:"locked_until"`
}

// accountStates are what is kept beside accounts, by record id.
type accountStates struct {
	locks        map[string]time.Time
	havePasskeys map[string]bool
}

func (a *api) statesOf(c *call, users ...*collections.User) (s accountStates, err error) {
	ids := make([]string, len(users))
	for i, user := range users {
		ids[i] = user.Id
	}
	if s.havePasskeys, err = collections.HavePasskeys(c.App, ids...); err != nil {
		return s, err
	}
	s.locks, err = a.Auth.Locks(c.App, users, c.Now)
	return s, err
}

func viewUser(user *collections.User, states accountStates) userView {
	view := userView{profileView: viewProfile(user, states.havePasskeys), PatientID: orNull(user.PatientID())}
	if until, locked := states.locks[user.Id]; locked {
		view.LockedUntil = orNull(input.FormatInstant(until))
	}
	return view
}

func (a *api) listUsers(c *call) error {
	q := c.query()
	p := q.paging()
	wanted := auth.UserQuery{
		Role: q.oneOf("role", roleNames()...), Active: q.boolean("is_active"), Search: q.text("search", 100),
		Ordering: q.ordering(auth.UserOrders...), Offset: p.Offset(), Limit: p.Size,
	}
	if err := q.err(); err != nil {
		return err
	}
	users, total, unreadable, err := auth.Users(c.App, wanted)
	if err != nil {
		return err
	}
	states, err := a.statesOf(c, users...)
	if err != nil {
		return err
	}
	views := make([]userView, len(users))
	for i, user := range users {
		views[i] = viewUser(user, states)
	}
	return list(c, p, total, views, unreadable)
}

func roleNames() (names []string) {
	for _, role := range access.Roles {
		names = append(names, string(role))
	}
	return names
}

// userID is the record id of the user in the path.
func (c *call) userID() (string, error) {
	number, err := c.pathInteger("id")
	if err != nil || number > maxUserNumber {
		return "", fault.Missing()
	}
	return collections.NumberID(number), nil
}

// maxUserNumber has as many digits as a record id.
const maxUserNumber = 999_999_999_999_999

func (a *api) readUser(c *call) error {
	id, err := c.userID()
	if err != nil {
		return err
	}
	user, err := collections.FindUser(c.App, id)
	if collections.Missing(err) {
		return fault.Missing()
	}
	return a.showUser(c, user, err)
}

// showUser answers with an account, or returns the error that kept it away.
func (a *api) showUser(c *call, user *collections.User, err error) error {
	if err != nil {
		return err
	}
	if err := collections.Readable(user.ProxyRecord()); err != nil {
		return err
	}
	return a.answerUser(c, user)
}

func (a *api) answerUser(c *call, user *collections.User) error {
	states, err := a.statesOf(c, user)
	if err != nil {
		return err
	}
	return c.ok(viewUser(user, states))
}

func (a *api) updateUser(c *call) error {
	id, err := c.userID()
	if err != nil {
		return err
	}
	var patch auth.UserPatch
	if err := c.decode(&patch); err != nil {
		return err
	}
	user, err := a.Auth.UpdateUser(c.App, c.Caller, id, patch, c.origin(), c.Now)
	return a.showUser(c, user, err)
}

func (a *api) activateUser(c *call) error {
	id, err := c.userID()
	if err != nil {
		return err
	}
	user, err := a.Auth.Activate(c.App, c.Caller, id, c.origin(), c.Now)
	return a.showUser(c, user, err)
}

func (a *api) deactivateUser(c *call) error {
	id, err := c.userID()
	if err != nil {
		return err
	}
	user, err := a.Auth.Deactivate(c.App, c.Caller, id, c.origin(), c.Now)
	if err != nil {
		return err
	}
	return a.answerUser(c, user) // done, whether the name can be read or not
}

// onUser is an action on the user in the path that answers with one sentence.
func onUser(c *call, act func(app core.App, caller auth.Caller, userID string, from audit.Origin, now time.Time) error, done string) error {
	id, err := c.userID()
	if err != nil {
		return err
	}
	if err := act(c.App, c.Caller, id, c.origin(), c.Now); err != nil {
		return err
	}
	return c.ok(detailView{done})
}

func (a *api) unlockUser(c *call) error {
	return onUser(c, a.Auth.Unlock, "The account is not locked.")
}

func (a *api) resetUserTwoFactor(c *call) error {
	return onUser(c, a.Auth.ResetTwoFactor, "Two-factor authentication is off.")
}

func (a *api) sendUserReset(c *call) error {
	return onUser(c, a.Auth.SendReset, "A link to set a password has been sent.")
}

func (a *api) signOutUser(c *call) error {
	return onUser(c, a.Auth.EndSessions, "All sign-ins have ended.")
}

func (a *api) updateOwnUser(c *call) error {
	var patch auth.OwnPatch
	if err := c.decode(&patch); err != nil {
		return err
	}
	user, err := a.Auth.UpdateOwn(c.App, c.Caller, patch, c.origin(), c.Now)
	if err != nil {
		return err
	}
	return c.showProfile(user)
}
