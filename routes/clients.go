package routes

import (
	"encoding/json"
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// tokenPath is where clients sign in, under the base path.
const tokenPath = "/oauth/token/" //nolint:gosec // an address

// clientRows are the endpoints of machine clients and of their sign-in.
func clientRows() []route {
	return []route{
		{http.MethodPost, tokenPath, authz.Anyone, ratelimit.SignIn, countFailedSignIns((*api).signInClient)},
		{http.MethodGet, "/clients/", authz.ManageClients, ratelimit.User, (*api).listClients},
		{http.MethodPost, "/clients/", authz.ManageClients, ratelimit.User, (*api).createClient},
		{http.MethodGet, "/clients/{id}/", authz.ManageClients, ratelimit.User, withRecord(byUUID(collections.FindClient), (*api).readClient)},
		{http.MethodPatch, "/clients/{id}/", authz.ManageClients, ratelimit.User, withRecord(byUUID(collections.FindClient), (*api).changeClient)},
		{http.MethodDelete, "/clients/{id}/", authz.ManageClients, ratelimit.User, withRecord(byUUID(collections.FindClient), (*api).deleteClient)},
		{http.MethodPost, "/clients/{id}/rotate-secret/", authz.ManageClients, ratelimit.User, withRecord(byUUID(collections.FindClient), (*api).rotateClientSecret)},
	}
}

type clientView struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Scopes       []string        `json:"scopes"`
	JWKSURL      *string         `json:"jwks_url"`
	JWKS         json.RawMessage `json:"jwks"`
	AllowedCIDRs []string        `json:"allowed_cidrs"`
	Active       bool            `json:"active"`
	CreatedAt    *string         `json:"created_at"`
	LastUsedAt   *string         `json:"last_used_at"`
}

func (a *api) viewClient(client *collections.Client) clientView {
	v := client.Values()
	return clientView{
		ID: client.Id, Name: v.Name, Scopes: append([]string{}, v.Scopes...), JWKSURL: orNull(v.JWKSURL), JWKS: v.JWKS,
		AllowedCIDRs: append([]string{}, v.AllowedCIDRs...), Active: v.Active,
		CreatedAt: instantOrNull(client.CreatedAt()), LastUsedAt: instantOrNull(a.Clients.LastUsed(client)),
	}
}

// credentialsView is a client with its secret, which is shown only once; null for a client that
// signs in with a key.
type credentialsView struct {
	clientView
	ClientSecret *string `json:"client_secret"`
}

func (a *api) viewCredentials(credentials auth.Credentials) credentialsView {
	return credentialsView{a.viewClient(credentials.Client), orNull(credentials.Secret)}
}

func (a *api) listClients(c *web.Call) error {
	q, p := c.Listing()
	if err := q.Err(); err != nil {
		return err
	}
	return web.RespondPageOf(c, p, a.viewClient)(collections.PageOfClients(c.App, p.Offset(), p.Size))
}

func (a *api) createClient(c *web.Call) error {
	password := func(b auth.NewClientBody) validate.String { return b.CurrentPassword }
	always := func(auth.ClientDraft) bool { return true }
	return create(c, confirmed(a, a.Clients.ReadNew, password, always), a.Clients.Create, web.RespondWith(c.Created, a.viewCredentials))
}

func (a *api) readClient(c *web.Call, client *collections.Client) error {
	return c.OK(a.viewClient(client))
}

func (a *api) changeClient(c *web.Call, client *collections.Client) error {
	password := func(b auth.ClientBody) validate.String { return b.CurrentPassword }
	extends := func(d auth.ClientDraft) bool { return d.ExtendsAccess(client.Values()) }
	return change(c, client.Id, confirmed(a, a.Clients.ReadChange, password, extends), a.Clients.Change, web.RespondWith(c.OK, a.viewClient))
}

func (a *api) deleteClient(c *web.Call, client *collections.Client) error {
	return c.NoContent(a.Clients.Delete(c.App, client.Id, c.Actor(), c.Now))
}

func (a *api) rotateClientSecret(c *web.Call, client *collections.Client) error {
	body, err := readCurrentPassword(c)
	if err != nil {
		return err
	}
	if err := a.Auth.RequireReauthentication(c.Request.Context(), c.App, c.Caller, body.CurrentPassword, c.Origin(), c.Now); err != nil {
		return err
	}
	return web.RespondWith(c.OK, a.viewCredentials)(a.Clients.RotateSecret(c.App, client.Id, c.Actor(), c.Now))
}

// accessTokenView is an OAuth token response. Source: RFC 6749, section 5.1.
type accessTokenView struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"` // seconds
	Scope       string `json:"scope"`
}

// signInClient issues an access token to a machine client. Failures count against the address; the client also has a
// limit of its own that no one else can use up. Source: docs/decisions/authentication.md, "Clients".
func (a *api) signInClient(c *web.Call) error {
	c.Header().Set("Pragma", "no-cache")
	form, err := readTokenForm(c)
	if err != nil {
		return addChallenge(c, err)
	}
	admit := func(clientID string) error { return c.Take(a.Limits, ratelimit.Auth, "client "+clientID) }
	token, err := a.Clients.SignIn(c.Request.Context(), c.App, form, admit, c.Origin(), c.Now)
	if err != nil {
		return addChallenge(c, err)
	}
	return c.OK(accessTokenView{token.Access, "bearer", int(auth.ClientTokenLife.Seconds()), token.Scope})
}

func readTokenForm(c *web.Call) (auth.TokenRequest, error) {
	body, err := c.Body()
	if err != nil {
		return auth.TokenRequest{}, err
	}
	return auth.ReadTokenRequest(c.Request.Header.Get("Content-Type"), body, c.Request.Header.Get("Authorization"))
}

// addChallenge adds the WWW-Authenticate header to a failed client authentication. Source: RFC 6749, section 5.2; RFC
// 7617.
func addChallenge(c *web.Call, err error) error {
	if web.Translate(err).Kind == fault.Unauthenticated {
		c.Header().Set("WWW-Authenticate", `Basic realm="clients", charset="UTF-8"`)
	}
	return err
}
