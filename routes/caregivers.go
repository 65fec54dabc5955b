package routes

import (
	"net/http"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

// caregiverRows are the endpoints of a patient's caregivers. Adding one sends a mail, so it has the
// rate limit of sign-ins.
func caregiverRows() []route {
	return []route{
		{http.MethodGet, "/patients/{id}/caregivers/", authz.ReadCaregivers, ratelimit.User, withPatient((*api).listCaregivers)},
		{http.MethodPost, "/patients/{id}/caregivers/", authz.ManageCaregivers, ratelimit.Auth, withPatient((*api).addCaregiver)},
		{http.MethodDelete, "/patients/{id}/caregivers/{caregiver_id}/", authz.EndCaregivers, ratelimit.User, withPatient((*api).endCaregiver)},
	}
}

// caregiverView is a caregiver of a patient.
type caregiverView struct {
	ID           int64   `json:"id"`
	PatientID    string  `json:"patient_id"`
	Email        string  `json:"email"`
	Name         *string `json:"name"`
	Relationship string  `json:"relationship"`
	Scope        string  `json:"scope"`
	Until        *string `json:"until"`
	GrantedBy    *string `json:"granted_by"`
	CreatedAt    *string `json:"created_at"`
}

// viewCaregiver renders a caregiver. The portal shows no names of staff and no name from the
// caregiver's account, which would reveal that the account exists.
func viewCaregiver(c *web.Call) func(auth.GrantedCaregiver) caregiverView {
	return func(g auth.GrantedCaregiver) caregiverView {
		view := caregiverView{
			ID: g.Access.Number(), PatientID: g.Access.PatientID(), Email: g.User.Email(), Name: orNull(nameOf(g.User)), Relationship: g.Access.Relationship(),
			Scope: g.Access.Scope(), Until: orNull(g.Access.Until()), GrantedBy: orNull(g.Access.GrantedBy()), CreatedAt: instantOrNull(g.Access.CreatedAt()),
		}
		if c.Caller.Role == authz.Patient {
			view.Name = orNull(g.SentName)
			if g.Access.GrantedBy() != c.Caller.Email {
				view.GrantedBy = nil
			}
		}
		return view
	}
}

func nameOf(user *collections.User) string {
	return strings.TrimSpace(user.FirstName() + " " + user.LastName())
}

func (a *api) listCaregivers(c *web.Call, patient *collections.Patient) error {
	q, p := c.Listing()
	if err := q.Err(); err != nil {
		return err
	}
	list, err := auth.Caregivers(c.App, patient, c.Now)
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.PatientRead, audit.ResourceRelatedPerson, "", patient.Id); err != nil {
		return err
	}
	return web.RespondPage(c, p, len(list), web.Map(web.Cut(p, list), viewCaregiver(c)), 0)
}

func (a *api) addCaregiver(c *web.Call, patient *collections.Patient) error {
	var body auth.CaregiverBody
	if err := c.Decode(&body); err != nil {
		return err
	}
	zone := collections.Zone(patient.TimeZone(), a.Zone)
	return web.RespondWith(c.Created, viewCaregiver(c))(a.Auth.AddCaregiver(c.Request.Context(), c.App, c.Caller, patient, body, zone, c.Origin(), c.Now))
}

func (a *api) endCaregiver(c *web.Call, patient *collections.Patient) error {
	number, err := c.PathInteger("caregiver_id")
	if err != nil {
		return err
	}
	return c.NoContent(auth.EndCaregiver(c.App, c.Caller, patient.Id, number, c.Origin(), c.Now))
}

// portalPatientView is a patient that a portal user may choose.
type portalPatientView struct {
	ID        string  `json:"id"`
	FirstName *string `json:"first_name"`
	LastName  *string `json:"last_name"`
	Scope     string  `json:"scope"` // self, enter or read
	Caregiver *int64  `json:"caregiver_id"`
	Language  *string `json:"preferred_language"` // BCP 47
}

// portalPatients returns a portal user's patients, the user's own record first, without deleted
// ones.
func (a *api) portalPatients(c *web.Call) ([]portalPatientView, error) {
	views, shown := []portalPatientView{}, []string{}
	for _, access := range c.Caller.Patients {
		patient, err := collections.FindPatient(c.App, access.PatientID)
		if collections.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		who := patient.Demographics()
		shown = append(shown, patient.Id)
		view := portalPatientView{patient.Id, orNull(who.FirstName), orNull(who.LastName), string(access.Scope), nil, orNull(patient.PreferredLanguage())}
		if access.CaregiverID != 0 {
			view.Caregiver = &access.CaregiverID
		}
		views = append(views, view)
	}
	if len(shown) == 0 {
		return views, nil
	}
	return views, c.RecordRead(audit.PatientRead, audit.ResourcePatient, "", shown...)
}
