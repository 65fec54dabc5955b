package config

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// OIDC configures single sign-on with the practice's identity provider. Source: docs/decisions/authentication.md, "Single sign-on".
type OIDC struct {
	Issuer       string        `env:"ISSUER" is:"url" doc:"address of the practice's identity provider (OpenID Connect), as its tokens name it; empty is local accounts only. https in production"`
	ClientID     string        `env:"CLIENT_ID" doc:"this service's id at the provider"`
	ClientSecret Secret        `env:"CLIENT_SECRET" doc:"this service's secret at the provider; omit it for a client without one"`
	RoleClaim    string        `env:"ROLE_CLAIM" envDefault:"groups" doc:"claim with a user's groups; dots lead into objects: realm_access.roles"`
	RoleMap      []GroupRole   `env:"ROLE_MAP" doc:"group=role pairs, comma separated; the first match applies. Staff roles only"`
	TrustMFA     bool          `env:"TRUST_MFA" envDefault:"false" doc:"treat every sign-in at the provider as made with a second factor, even when its tokens do not state so"`
	MaxAge       time.Duration `env:"MAX_AGE" envDefault:"15m" min:"0s" max:"24h" doc:"maximum time since the user authenticated at the provider; 0 = leave it to the provider"`
	Require      bool          `env:"REQUIRE" envDefault:"false" doc:"staff other than administrators sign in only at the provider"`
}

// Configured reports whether there is an identity provider.
func (o OIDC) Configured() bool { return o.Issuer != "" }

// GroupRole maps a group of the identity provider to a role.
type GroupRole struct {
	Group string
	Role  authz.Role
}

// parseRoleMap parses group=role pairs. A group may contain spaces and equal signs, as directory names do.
func parseRoleMap(text string) (pairs []GroupRole, err error) {
	for item := range strings.SplitSeq(text, ",") {
		at := strings.LastIndexByte(item, '=')
		if at < 0 {
			return nil, errRoleMap
		}
		pair := GroupRole{strings.TrimSpace(item[:at]), authz.Role(strings.TrimSpace(item[at+1:]))}
		if pair.Group == "" || !slices.Contains(authz.Roles, pair.Role) || pair.Role == authz.Patient {
			return nil, errRoleMap
		}
		pairs = append(pairs, pair)
	}
	return pairs, nil
}

var errRoleMap = errors.New("must be group=role pairs, comma separated, with roles of the staff")

// checkOIDC requires the settings for single sign-on. Without a role map no user would have a role.
func (l *loader) checkOIDC(o OIDC) {
	const prefix = Prefix + "OIDC_"
	switch {
	case !o.Configured() && o.Require:
		l.report(prefix+"ISSUER", "is required with "+prefix+"REQUIRE")
	case o.Configured() && o.ClientID == "":
		l.report(prefix+"CLIENT_ID", "is required with "+prefix+"ISSUER")
	case o.Configured() && len(o.RoleMap) == 0:
		l.report(prefix+"ROLE_MAP", "is required with "+prefix+"ISSUER")
	}
}
