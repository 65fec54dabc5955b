package config

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// OIDC is the practice's identity provider. Source: docs/decisions/authentication.md, "Single sign-on".
type OIDC struct {
	Issuer       string        `env:"ISSUER" is:"url" doc:"address of the practice's identity provider, as its tokens name it; empty = local accounts only"`
	ClientID     string        `env:"CLIENT_ID" doc:"this service's id at the provider"`
	ClientSecret Secret        `env:"CLIENT_SECRET" doc:"this service's secret at the provider"`
	RoleClaim    string        `env:"ROLE_CLAIM" envDefault:"groups" doc:"claim with the groups of a person"`
	RoleMap      []GroupRole   `env:"ROLE_MAP" doc:"group=role,...; the first that fits holds"`
	TrustMFA     bool          `env:"TRUST_MFA" envDefault:"false" doc:"every sign-in at the provider takes a second factor, whether it says so or not"`
	MaxAge       time.Duration `env:"MAX_AGE" envDefault:"15m" min:"0s" max:"24h" doc:"how long ago somebody may have proven at the provider who they are; 0 = leave it to the provider"`
	Require      bool          `env:"REQUIRE" envDefault:"false" doc:"staff but administrators sign in there alone"`
}

// Configured reports whether there is an identity provider.
func (o OIDC) Configured() bool { return o.Issuer != "" }

// GroupRole gives a group of the provider's a role here.
type GroupRole struct {
	Group string
	Role  authz.Role
}

// parseRoleMap reads group=role pairs. A group may hold spaces and equal signs, as those of directories do.
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

// checkOIDC wants what signing in with a provider takes. Without a map nobody had a role.
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
