package routes

import (
	"net/http"
	"strings"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

const (
	signOnPath = "/auth/oidc/"
	htmlType   = "text/html"
)

// signOnRows are the endpoints of single sign-on.
func signOnRows() []route {
	return []route{
		{http.MethodGet, signOnPath, authz.Anyone, ratelimit.User, (*api).readSignOn},
		{http.MethodGet, signOnPath + "login/", authz.Anyone, ratelimit.SignIn, (*api).beginSignOn},
		{http.MethodGet, signOnPath + "callback/", authz.Anyone, ratelimit.SignIn, countFailedSignIns((*api).finishSignOn)},
		{http.MethodPost, signOnPath + "verify/", authz.Anyone, ratelimit.SignIn, countFailedSignIns(withBody((*api).finishStep))},
		{http.MethodPost, signOnPath + "exchange/", authz.Anyone, ratelimit.SignIn, countFailedSignIns((*api).exchangeToken)},
		{http.MethodDelete, "/users/{id}/identity/", authz.ManageUsers, ratelimit.User, withUserID((*api).unlinkUser)},
	}
}

func (a *api) readSignOn(c *web.Call) error {
	offered, required := a.Auth.SignOn()
	return c.OK(struct {
		Offered      bool   `json:"offered"`
		Required     bool   `json:"required"`
		PracticeName string `json:"practice_name"` // for the sign-in page
	}{offered, required, a.PracticeName})
}

// beginSignOn redirects the browser to the identity provider and sets the cookie that binds the sign-in to this
// browser.
func (a *api) beginSignOn(c *web.Call) error {
	started, err := a.Auth.BeginSignOn(c.Request.Context(), c.Now)
	if err != nil {
		return err
	}
	a.setSignOnCookie(c, started.Cookie, int(started.Life.Seconds()))
	return redirect(c, started.URL)
}

// setSignOnCookie sets or clears the cookie. Scripts cannot read it, and SameSite=Lax sends it on the provider's
// redirect. Source: RFC 6265bis, 4.1.2.
func (a *api) setSignOnCookie(c *web.Call, value string, seconds int) {
	name, secure := a.signOnCookie()
	cookie := http.Cookie{ //nolint:gosec // Secure if the public URL uses TLS
		Name: name, Value: value, MaxAge: seconds, Path: web.BasePath + signOnPath, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: secure,
	}
	c.Header().Add("Set-Cookie", cookie.String())
}

// signOnCookie returns the cookie's name and whether it requires TLS.
func (a *api) signOnCookie() (name string, secure bool) {
	if strings.HasPrefix(a.PublicURL, "https://") {
		return "__Secure-vigil-sign-on", true
	}
	return "vigil-sign-on", false
}

// finishSignOn is the redirect endpoint of the identity provider. A program receives the tokens; a browser is
// redirected to the console, which calls this endpoint again as a program, so that no token is ever in a URL. Source:
// docs/decisions/authentication.md, "Single sign-on".
func (a *api) finishSignOn(c *web.Call) error {
	c.Header().Set("Cache-Control", "no-store")
	c.Header().Set("Referrer-Policy", "no-referrer") // the URL holds the authorization code
	values := c.Request.URL.Query()
	if offered, _ := a.Auth.SignOn(); offered && web.Preferred(c.Request.Header, htmlType, web.JSONType) == htmlType {
		return redirect(c, a.PublicURL+"/#/sign-on?"+values.Encode())
	}
	back := auth.Callback{State: values.Get("state"), Code: values.Get("code"), Error: values.Get("error")}
	name, _ := a.signOnCookie()
	if held, err := c.Request.Cookie(name); err == nil {
		back.Cookie = held.Value
	}
	session, err := a.Auth.FinishSignOn(c.Request.Context(), c.App, back, c.Origin(), c.Now)
	if err != nil {
		return err
	}
	a.setSignOnCookie(c, "", -1)
	return c.OK(viewSignedIn(session))
}

// exchangedTokenView is the answer of a token exchange. Source: RFC 8693, section 2.2.1.
type exchangedTokenView struct {
	AccessToken     string `json:"access_token"`
	IssuedTokenType string `json:"issued_token_type"`
	TokenType       string `json:"token_type"`
	ExpiresIn       int    `json:"expires_in"` // seconds
}

// exchangeToken signs in a member of staff for a center. Source: docs/decisions/authentication.md, "Token exchange".
func (a *api) exchangeToken(c *web.Call) error {
	c.Header().Set("Pragma", "no-cache")
	body, err := c.Body()
	if err != nil {
		return err
	}
	idToken, err := auth.ReadExchange(c.Request.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	session, err := a.Auth.Exchange(c.Request.Context(), c.App, idToken, c.Origin(), c.Now)
	if err != nil {
		return err
	}
	return c.OK(exchangedTokenView{session.Access, auth.AccessTokenType, "Bearer", int(session.AccessExpiresIn.Seconds())})
}

// unlinkUser removes the link between an account and the identity provider.
func (a *api) unlinkUser(c *web.Call, id string) error {
	return c.NoContent(a.Auth.Unlink(c.App, c.Caller, id, c.Origin(), c.Now))
}

// finishStep completes a sign-in at a provider that checked only one factor.
func (a *api) finishStep(c *web.Call, body auth.StepCodeBody) error {
	return web.RespondWith(c.OK, viewSignedIn)(a.Auth.FinishSecondFactor(c.Request.Context(), c.App, body, c.Origin(), c.Now))
}

// redirect sends the browser to another address.
func redirect(c *web.Call, address string) error {
	c.Header().Set("Cache-Control", "no-store")
	c.Header().Set("Location", address)
	return c.Send(http.StatusFound, htmlType+"; charset=utf-8", nil)
}
