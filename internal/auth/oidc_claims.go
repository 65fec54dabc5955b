package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/vigilhealth/vigil/internal/authz"
)

// mfa is the authentication method of more than one factor. Source: RFC 8176, section 2.
const mfa = "mfa"

// said are the claims of a token, or of the provider's page about the person.
type said map[string]json.RawMessage

func (s said) text(name string) string {
	var text string
	_ = json.Unmarshal(s[name], &text) // another kind is none
	return strings.TrimSpace(text)
}

// flag reads what some providers write as text.
func (s said) flag(name string) bool {
	var is bool
	if json.Unmarshal(s[name], &is) == nil {
		return is
	}
	return s.text(name) == "true"
}

// list reads a list of texts, or one text as a list of one.
func list(raw json.RawMessage) []string {
	var many []string
	if json.Unmarshal(raw, &many) == nil {
		return many
	}
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	return nil
}

// at is the claim of a name; of a name with dots that is none itself, what they lead to.
func (s said) at(name string) json.RawMessage {
	if raw, ok := s[name]; ok {
		return raw
	}
	outer, rest, ok := strings.Cut(name, ".")
	if !ok {
		return nil
	}
	var inner said
	_ = json.Unmarshal(s[outer], &inner) // another kind has nothing inside
	return inner.at(rest)
}

// identify reads who somebody is: from the signed token, and what is missing there from the provider's page about the person.
func (p *OIDCProvider) identify(ctx context.Context, found *endpoints, token *oauth2.Token, verified *oidc.IDToken) (Identity, error) {
	var claims said
	if err := verified.Claims(&claims); err != nil {
		return Identity{}, refused(err)
	}
	signed := claims
	if (claims.text("email") == "" || claims.at(p.options.RoleClaim) == nil) && found.provider.UserInfoEndpoint() != "" {
		page, err := found.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return Identity{}, failed(errors.New("the page about the person cannot be read")) // the error has its words
		}
		if page.Subject != verified.Subject { // OpenID Connect Core 1.0, 5.3.2
			return Identity{}, refused(errors.New("the provider told of somebody else"))
		}
		more := said{}
		if err := page.Claims(&more); err != nil {
			return Identity{}, failed(err)
		}
		confirms := more // what is confirmed of one address is so of no other
		if claims.text("email") == "" {
			confirms = claims
		}
		if !strings.EqualFold(claims.text("email"), more.text("email")) {
			delete(confirms, "email_verified")
		}
		for name, value := range claims {
			more[name] = value
		}
		claims = more
	}
	first, last := names(claims)
	return Identity{
		Issuer: verified.Issuer, Subject: verified.Subject, Email: claims.text("email"), EmailVerified: claims.flag("email_verified"),
		FirstName: first, LastName: last, Role: p.role(list(claims.at(p.options.RoleClaim))),
		SecondFactor: p.options.TrustMFA || slices.Contains(list(signed["amr"]), mfa),
	}, nil
}

// forUs reports whether a token that names this service among its audiences was issued to it: one for several must say to whom, and who is named must
// be this service. Source: OpenID Connect Core 1.0, 3.1.3.7, items 4 and 5.
func (p *OIDCProvider) forUs(token *oidc.IDToken) bool {
	var says struct {
		Party *string `json:"azp"`
	}
	switch {
	case token.Claims(&says) != nil:
		return false
	case says.Party == nil:
		return len(token.Audience) == 1
	}
	return *says.Party == p.options.ClientID
}

// slack is how far the provider's clock may be from ours.
const slack = time.Minute

// stale reports whether who began at a time was let in on a proof that was older than what was asked for then. Of a provider that does not say
// when it was given nothing is known. Source: OpenID Connect Core 1.0, 3.1.3.7.
func (p *OIDCProvider) stale(token *oidc.IDToken, began time.Time) bool {
	var says struct {
		ProvenAt *float64 `json:"auth_time"`
	}
	if p.options.MaxAge == 0 || token.Claims(&says) != nil || says.ProvenAt == nil {
		return false
	}
	return time.Unix(int64(*says.ProvenAt), 0).Before(began.Add(-p.options.MaxAge - slack))
}

// role is that of the first row of the map that names one of the groups.
func (p *OIDCProvider) role(groups []string) authz.Role {
	for _, row := range p.options.Roles {
		if slices.Contains(groups, row.Group) {
			return row.Role
		}
	}
	return ""
}

// names are what somebody is called; the account needs both.
func names(claims said) (first, last string) {
	first, last = claims.text("given_name"), claims.text("family_name")
	if first != "" && last != "" {
		return first, last
	}
	mailbox, _, _ := strings.Cut(claims.text("email"), "@")
	whole := cmp.Or(claims.text("name"), claims.text("preferred_username"), mailbox)
	before, after, _ := strings.Cut(whole, " ")
	first = cmp.Or(first, before, "Staff")
	return first, cmp.Or(last, strings.TrimSpace(after), first)
}
