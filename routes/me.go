package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

// meRows are the endpoints about the signed-in user and the staff they can assign work to.
func meRows() []route {
	return []route{
		{http.MethodGet, "/auth/me/", authz.UseOwnAccount, ratelimit.User, (*api).readMe},
		{http.MethodPatch, "/auth/me/", authz.UseOwnAccount, ratelimit.User, withBody((*api).updateMe)},
		{http.MethodGet, "/users/staff/", authz.ReadStaff, ratelimit.User, (*api).listStaff},
	}
}

// meView is what the console needs to render for a user.
type meView struct {
	Permissions map[string]string `json:"permissions"`
	Practice    practiceView      `json:"practice"`
	Display     displayView       `json:"display"`
	DraftKey    string            `json:"draft_key"`
	// Patients are those of a portal user, the own first; left out for others.
	Patients []portalPatientView `json:"patients,omitempty"`
}

type practiceView struct {
	Name     string `json:"name"`
	TimeZone string `json:"time_zone"`
	// SendsReports: the EMR accepts documents.
	SendsReports bool `json:"sends_reports"`
	// PortalAdvice is the practice's advice after a reading outside the bounds, by language; a
	// language without advice has the console's own words.
	PortalAdvice map[string]string `json:"portal_advice"`
}

// DisplayUnits are the practice's units.
type DisplayUnits = collections.DisplayUnits

type displayView struct {
	WeightUnit      string `json:"weight_unit"`
	TemperatureUnit string `json:"temperature_unit"`
	SingleKeys      bool   `json:"single_keys"`
}

func (a *api) readMe(c *web.Call) error {
	user, err := collections.FindUser(c.App, c.Caller.RecordID)
	return a.showMe(c, user, err)
}

func (a *api) updateMe(c *web.Call, patch auth.DisplayPatch) error {
	user, err := a.Auth.UpdateDisplay(c.App, c.Caller, patch, c.Origin(), c.Now)
	return a.showMe(c, user, err)
}

func (a *api) showMe(c *web.Call, user *collections.User, err error) error {
	if err != nil {
		return err
	}
	key, err := a.Auth.DraftKey(user.Id)
	if err != nil {
		return err
	}
	weight, temperature, singleKeys := user.Display(a.DisplayUnits)
	patients, err := a.portalPatients(c)
	if err != nil {
		return err
	}
	return c.OK(meView{
		Permissions: authz.Rights(authz.Role(user.Role())), Practice: practiceView{a.PracticeName, a.Zone.String(), a.EMR.Client.TakesDocuments(), a.portalAdvice()},
		Display: displayView{weight, temperature, singleKeys}, DraftKey: key, Patients: patients,
	})
}

func (a *api) portalAdvice() map[string]string {
	given := map[string]string{}
	for language, text := range a.PortalAdvice {
		if text != "" {
			given[language] = text
		}
	}
	return given
}

// staffView is a user that work can be assigned to. It holds only what colleagues see anyway.
type staffView struct {
	ID    int64  `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
	Role  string `json:"role"`
}

func viewStaff(user *collections.User) staffView {
	return staffView{user.Number(), user.FirstName() + " " + user.LastName(), user.Email(), user.Role()}
}

// listStaff lists active staff, without portal users.
func (a *api) listStaff(c *web.Call) error {
	q, p := c.Listing()
	roles := make([]authz.Role, 0, len(authz.Roles))
	for _, role := range authz.Roles {
		if role != authz.Patient {
			roles = append(roles, role)
		}
	}
	active := true
	query := auth.UserQuery{
		Role: q.OneOf("role", stringsOf(roles)...), Not: string(authz.Patient), Active: &active, Search: q.Text("search", 100), Offset: p.Offset(), Limit: p.Size,
	}
	if err := q.Err(); err != nil {
		return err
	}
	users, total, unreadable, err := auth.Users(c.App, query)
	if err != nil {
		return err
	}
	return web.RespondPage(c, p, total, web.Map(users, viewStaff), unreadable)
}
