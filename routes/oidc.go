package routes

import (
	"net/http"
	"strings"

	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/limits"
	"github.com/vigilhealth/vigil/internal/oidc"
	"github.com/vigilhealth/vigil/routes/web"
)

const (
	signOnPath = "/auth/oidc/"
	htmlType   = "text/html"
)

// signOnRows are signing in with the practice's identity provider.
func signOnRows() []route {
	return []route{
		{http.MethodGet, signOnPath, access.Anyone, limits.User, (*api).readSignOn},
		{http.MethodGet, signOnPath + "login/", access.Anyone, limits.SignIn, (*api).beginSignOn},
		{http.MethodGet, signOnPath + "callback/", access.Anyone, limits.SignIn, signIn((*api).finishSignOn)},
		{http.MethodPost, signOnPath + "verify/", access.Anyone, limits.SignIn, signIn(withBody((*api).finishStep))},
	}
}

func (a *api) readSignOn(c *web.Call) error {
	offered, required := a.Auth.SignOn()
	return c.OK(struct {
		Offered  bool `json:"offered"`
		Required bool `json:"required"`
	}{offered, required})
}

// beginSignOn sends the browser to the identity provider, with a cookie that it comes back with.
func (a *api) beginSignOn(c *web.Call) error {
	started, err := a.Auth.BeginSignOn(c.Request.Context(), c.Now)
	if err != nil {
		return err
	}
	cookie := a.signOnCookie()
	cookie.Value, cookie.MaxAge = started.Cookie, int(started.Life.Seconds())
	c.Header().Add("Set-Cookie", cookie.String())
	return leave(c, started.URL)
}

// signOnCookie is read by nobody but the service, and sent when the provider sends the browser back, which is another site's link.
// Source: RFC 6265bis, 4.1.2.
func (a *api) signOnCookie() *http.Cookie {
	cookie := &http.Cookie{Name: "vigil-sign-on", Path: web.BasePath + signOnPath, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if strings.HasPrefix(a.PublicURL, "https://") {
		cookie.Name, cookie.Secure = "__Secure-"+cookie.Name, true
	}
	return cookie
}

// finishSignOn is where the identity provider sends the browser back to. A program gets what signing in answers; a browser goes on to the console,
// which asks here again as a program, so that no token is ever in an address. Source: docs/decisions/authentication.md, "Single sign-on".
func (a *api) finishSignOn(c *web.Call) error {
	c.Header().Set("Cache-Control", "no-store")
	c.Header().Set("Referrer-Policy", "no-referrer") // the address holds the code
	values := c.Request.URL.Query()
	if offered, _ := a.Auth.SignOn(); offered && web.Preferred(c.Request.Header, htmlType, web.JSONType) == htmlType {
		return leave(c, a.PublicURL+"/#/sign-on?"+values.Encode())
	}
	back := oidc.Callback{State: values.Get("state"), Code: values.Get("code"), Error: values.Get("error")}
	cookie := a.signOnCookie()
	if held, err := c.Request.Cookie(cookie.Name); err == nil {
		back.Cookie = held.Value
	}
	session, err := a.Auth.FinishSignOn(c.Request.Context(), c.App, back, c.Origin(), c.Now)
	if err != nil {
		return err
	}
	cookie.MaxAge = -1
	c.Header().Add("Set-Cookie", cookie.String())
	return c.OK(viewSignedIn(session))
}

// finishStep ends a sign-in at a provider that asked for one factor only.
func (a *api) finishStep(c *web.Call, body auth.StepCodeBody) error {
	return web.Show(c.OK, viewSignedIn)(a.Auth.FinishStep(c.Request.Context(), c.App, body, c.Origin(), c.Now))
}

// leave sends the browser elsewhere.
func leave(c *web.Call, address string) error {
	c.Header().Set("Cache-Control", "no-store")
	c.Header().Set("Location", address)
	return c.Send(http.StatusFound, htmlType+"; charset=utf-8", nil)
}
