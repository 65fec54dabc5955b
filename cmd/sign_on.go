package cmd

import (
	"fmt"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/routes/web"
)

// newSignOn returns a client of the practice's identity provider, or nil without one. It does not contact the provider.
func newSignOn(sealer *phi.Sealer, settings config.Settings) (*auth.OIDCProvider, error) {
	key, err := sealer.DeriveKey("sign-on state")
	if err != nil {
		return nil, fmt.Errorf("sign-on: %w", err)
	}
	o := settings.OIDC
	roles := make([]auth.GroupRole, len(o.RoleMap))
	for i, pair := range o.RoleMap {
		roles[i] = auth.GroupRole(pair)
	}
	return auth.NewOIDCProvider(auth.OIDCOptions{
		Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: phi.Text(o.ClientSecret.Reveal()), RedirectURL: settings.PublicURL + web.BasePath + "/auth/oidc/callback/",
		RoleClaim: o.RoleClaim, Roles: roles, TrustMFA: o.TrustMFA, MaxAge: o.MaxAge, Key: key,
	}), nil
}
