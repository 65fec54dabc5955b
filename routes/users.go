package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

type registeredView struct {
	ID        int64   `json:"id"`
	Email     string  `json:"email"`
	FirstName string  `json:"first_name"`
	LastName  string  `json:"last_name"`
	Role      string  `json:"role"`
	IsActive  bool    `json:"is_active"`
	CreatedAt *string `json:"created_at"`
}

func (a *api) register(c *web.Call, body auth.RegisterBody) error {
	user, err := a.Auth.Register(c.Request.Context(), c.App, c.Caller, body, c.Origin(), c.Now)
	if err != nil {
		return err
	}
	return c.Created(registeredView{
		user.Number(), user.Email(), user.FirstName(), user.LastName(), user.Role(), user.Active(),
		instantOrNull(user.CreatedAt()),
	})
}

// userView is an account for administrators.
type userView struct {
	profileView
	PatientID   *string `json:"patient_id"`
	LockedUntil *string `json:"locked_until"`
}

// viewUser loads the data stored outside the accounts and returns their view.
func (a *api) viewUser(c *web.Call, users ...*collections.User) (func(*collections.User) userView, error) {
	ids := web.Map(users, func(user *collections.User) string { return user.Id })
	havePasskeys, err := collections.UsersWithPasskeys(c.App, ids...)
	if err != nil {
		return nil, err
	}
	locks, err := a.Auth.LockoutEnds(c.App, users, c.Now)
	return func(user *collections.User) userView {
		return userView{viewProfile(user, havePasskeys), orNull(user.PatientID()), instantOrNull(locks[user.Id])}
	}, err
}

func (a *api) listUsers(c *web.Call) error {
	q, p := c.Listing()
	query := auth.UserQuery{
		Role: q.OneOf("role", stringsOf(authz.Roles)...), Active: q.Boolean("is_active"), Search: q.Text("search", 100),
		Ordering: q.Ordering(auth.UserOrders...), Offset: p.Offset(), Limit: p.Size,
	}
	if err := q.Err(); err != nil {
		return err
	}
	users, total, unreadable, err := auth.Users(c.App, query)
	if err != nil {
		return err
	}
	view, err := a.viewUser(c, users...)
	if err != nil {
		return err
	}
	return web.RespondPage(c, p, total, web.Map(users, view), unreadable)
}

// number reads the record number of the path.
func (a *api) number(c *web.Call) (int64, error) { return c.PathInteger("id") }

// recordID returns the record id for the number of the path.
func (a *api) recordID(c *web.Call) (string, error) {
	number, err := c.PathInteger("id")
	if err != nil || number > maxNumber {
		return "", fault.Missing()
	}
	return collections.NumberID(number), nil
}

// withUserID serves a row about a numbered record, by its record id.
func withUserID(handle func(a *api, c *web.Call, id string) error) handler {
	return withRecord((*api).recordID, handle)
}

// maxNumber has as many digits as a record id.
const maxNumber = 999_999_999_999_999

func (a *api) readUser(c *web.Call, id string) error {
	user, err := collections.FindUser(c.App, id)
	return a.showUser(c)(user, fault.OrMissing(err))
}

// showUser answers with an account, or returns the error passed to it.
func (a *api) showUser(c *web.Call) func(*collections.User, error) error {
	return func(user *collections.User, err error) error {
		if err != nil {
			return err
		}
		if err := collections.Readable(user.ProxyRecord()); err != nil {
			return err
		}
		return a.answerUser(c, user)
	}
}

func (a *api) answerUser(c *web.Call, user *collections.User) error {
	view, err := a.viewUser(c, user)
	if err != nil {
		return err
	}
	return c.OK(view(user))
}

func (a *api) updateUser(c *web.Call, id string) error {
	var patch auth.UserPatch
	if err := c.Decode(&patch); err != nil {
		return err
	}
	return a.showUser(c)(a.Auth.UpdateUser(c.Request.Context(), c.App, c.Caller, id, patch, c.Origin(), c.Now))
}

func (a *api) activateUser(c *web.Call, id string) error {
	return a.showUser(c)(a.Auth.Activate(c.App, c.Caller, id, c.Origin(), c.Now))
}

func (a *api) deactivateUser(c *web.Call, id string) error {
	user, err := a.Auth.Deactivate(c.App, c.Caller, id, c.Origin(), c.Now)
	if err != nil {
		return err
	}
	return a.answerUser(c, user) // the update is done, also if the name cannot be decrypted
}

func (a *api) unlockUser(c *web.Call, id string) error {
	return c.Respond(detailView{"The account is not locked."}, a.Auth.Unlock(c.App, c.Caller, id, c.Origin(), c.Now))
}

func (a *api) resetUserTwoFactor(c *web.Call, id string) error {
	body, err := readCurrentPassword(c)
	if err != nil {
		return err
	}
	err = a.Auth.ResetTwoFactor(c.Request.Context(), c.App, c.Caller, id, body, c.Origin(), c.Now)
	return c.Respond(detailView{"Two-factor authentication is off."}, err)
}

// readCurrentPassword reads an optional body; a body of another form counts as one without a
// password.
func readCurrentPassword(c *web.Call) (body auth.CurrentPasswordBody, err error) {
	raw, err := c.Body()
	_ = validate.DecodeObject(raw, &body)
	return body, err
}

func (a *api) sendUserReset(c *web.Call, id string) error {
	return c.Respond(detailView{"A link to set a password has been sent."}, a.Auth.SendReset(c.App, c.Caller, id, c.Origin(), c.Now))
}

func (a *api) signOutUser(c *web.Call, id string) error {
	return c.Respond(detailView{"All sign-ins have ended."}, a.Auth.EndSessions(c.App, c.Caller, id, c.Origin(), c.Now))
}

func (a *api) updateOwnUser(c *web.Call, patch auth.OwnPatch) error {
	user, err := a.Auth.UpdateOwn(c.App, c.Caller, patch, c.Origin(), c.Now)
	if err != nil {
		return err
	}
	return showProfile(c, user)
}
