package routes

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

// launchPath is where an EMR opens this service for one of its users. Source: HL7 SMART App Launch 2.2.
const launchPath = "/launch"

// launchRows are the endpoints of a launch under the base path; a page calls them.
func launchRows() []route {
	return []route{
		{http.MethodGet, "/auth/smart/callback/", authz.Anyone, ratelimit.SignIn, countFailedSignIns((*api).finishLaunch)},
		{http.MethodPost, "/auth/smart/link/", authz.LinkIdentity, ratelimit.User, withBody((*api).linkLaunch)},
	}
}

// launchPages are the addresses that the EMR and its sign-in open in the browser.
func launchPages() []route {
	return []route{
		{http.MethodGet, launchPath, authz.Anyone, ratelimit.SignIn, (*api).beginLaunch},
		{http.MethodGet, launchPath + "/callback", authz.Anyone, ratelimit.SignIn, (*api).returnToLaunch},
	}
}

// beginLaunch redirects the browser to the EMR's sign-in. Inside a frame it first sets a cookie and
// reads it back, because some browsers store none there. The console shows a rejection.
func (a *api) beginLaunch(c *web.Call) error {
	values := c.Request.URL.Query()
	issuer, launch := values.Get("iss"), values.Get("launch")
	cookie := a.launchCookie(c)
	if isFramed(c.Request) && cookie == "" && a.Auth.CanLaunch() {
		if values.Get("checked") != "" {
			return a.showLaunch(c, url.Values{"problem": {"cookie_blocked"}, "iss": {issuer}, "launch": {launch}})
		}
		a.setLaunchCookie(c, auth.BrowserSecret())
		return redirect(c, launchPath+"?"+url.Values{"iss": {issuer}, "launch": {launch}, "checked": {"1"}}.Encode())
	}
	started, err := a.Auth.BeginLaunch(c.Request.Context(), c.App, issuer, launch, cookie, c.Origin(), c.Now)
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind != fault.Internal {
		return a.showLaunch(c, url.Values{"problem": {refused.Code}})
	}
	if err != nil {
		return err
	}
	a.setLaunchCookie(c, started.Cookie)
	return redirect(c, started.URL)
}

// isFramed reports whether the browser opens the page in a frame. Source: W3C Fetch Metadata.
func isFramed(r *http.Request) bool { return r.Header.Get("Sec-Fetch-Dest") == "iframe" }

// returnToLaunch passes the parameters of the EMR's redirect to the console behind the #, which no server receives.
func (a *api) returnToLaunch(c *web.Call) error {
	values := c.Request.URL.Query()
	passed := url.Values{}
	for _, name := range []string{"code", "state", "error"} {
		if values.Has(name) {
			passed.Set(name, values.Get(name))
		}
	}
	return a.showLaunch(c, passed)
}

func (a *api) showLaunch(c *web.Call, values url.Values) error {
	c.Header().Set("Referrer-Policy", "no-referrer") // the URL holds the authorization code
	return redirect(c, a.PublicURL+"/#/launch?"+values.Encode())
}

// launchCookieName is the cookie that binds a launch to a browser.
func (a *api) launchCookieName() string {
	if strings.HasPrefix(a.PublicURL, "https://") {
		return "__Host-vigil-launch"
	}
	return "vigil-launch"
}

func (a *api) launchCookie(c *web.Call) string {
	held, err := c.Request.Cookie(a.launchCookieName())
	if err != nil {
		return ""
	}
	return held.Value
}

// setLaunchCookie sets the cookie for the duration of a sign-in. Inside a frame of a configured
// site it needs SameSite=None, and Partitioned where browsers block third-party cookies. Source:
// RFC 6265bis, 4.1.2; Cookies Having Independent Partitioned State.
func (a *api) setLaunchCookie(c *web.Call, value string) {
	isSecure := strings.HasPrefix(a.PublicURL, "https://")
	cookie := http.Cookie{ //nolint:gosec // Secure if the public URL uses TLS
		Name: a.launchCookieName(), Value: value, Path: "/", MaxAge: int(auth.LaunchLife.Seconds()), HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: isSecure,
	}
	if isSecure && len(a.FrameAncestors) > 0 {
		cookie.SameSite, cookie.Partitioned = http.SameSiteNoneMode, true
	}
	c.Header().Add("Set-Cookie", cookie.String())
}

// launchedPatientView is the patient in the context of a launch, or why there is none.
type launchedPatientView struct {
	PatientID      *string `json:"patient_id"`
	PatientProblem *string `json:"patient_problem"` // no_patient, other_system, unknown_patient
}

func viewLaunchedPatient(p auth.LaunchedPatient) launchedPatientView {
	return launchedPatientView{orNull(p.ID), orNull(p.Problem)}
}

// finishLaunch exchanges the code of the EMR's redirect for a session. No token is ever in a URL.
func (a *api) finishLaunch(c *web.Call) error {
	values := c.Request.URL.Query()
	back := auth.Callback{State: values.Get("state"), Code: values.Get("code"), Error: values.Get("error"), Cookie: a.launchCookie(c)}
	launched, err := a.Auth.FinishLaunch(c.Request.Context(), c.App, back, c.Origin(), c.Now)
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Code == auth.TOTPRequired {
		return refused.With("launched_patient", viewLaunchedPatient(launched.Patient))
	}
	if err != nil {
		return err
	}
	view := viewSignedIn(launched.Session)
	view.LaunchedPatient = new(viewLaunchedPatient(launched.Patient))
	return c.OK(view)
}

// linkLaunch links the caller's account to the EMR's user of the launch.
func (a *api) linkLaunch(c *web.Call, body auth.LaunchTicketBody) error {
	return web.RespondWith(c.OK, viewLaunchedPatient)(a.Auth.LinkLaunch(c.App, c.Caller, body, a.launchCookie(c), c.Origin(), c.Now))
}
