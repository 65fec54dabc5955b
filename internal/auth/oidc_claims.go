package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/vigilhealth/vigil/internal/authz"
)

// mfa is the amr value for multiple-factor authentication. Source: RFC 8176, section 2.
const mfa = "mfa"

// claimSet holds the claims of an ID token or of the userinfo response.
type claimSet map[string]json.RawMessage

func (s claimSet) text(name string) string {
	var text string
	_ = json.Unmarshal(s[name], &text) // a claim of another type counts as absent
	return strings.TrimSpace(text)
}

// boolean also accepts "true" as text, which some providers send.
func (s claimSet) boolean(name string) bool {
	var is bool
	if json.Unmarshal(s[name], &is) == nil {
		return is
	}
	return s.text(name) == "true"
}

// stringList reads a list of strings, or a single string as a list of one.
func stringList(raw json.RawMessage) []string {
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

// lookup returns the claim with the name. If there is none, dots in the name descend into objects.
func (s claimSet) lookup(name string) json.RawMessage {
	if raw, ok := s[name]; ok {
		return raw
	}
	outer, rest, ok := strings.Cut(name, ".")
	if !ok {
		return nil
	}
	var inner claimSet
	_ = json.Unmarshal(s[outer], &inner) // a claim of another type has no members
	return inner.lookup(rest)
}

// identify reads the identity from the ID token, and claims missing there from the userinfo endpoint.
func (p *OIDCProvider) identify(ctx context.Context, found *endpoints, token *oauth2.Token, verified *oidc.IDToken) (Identity, error) {
	var claims claimSet
	if err := verified.Claims(&claims); err != nil {
		return Identity{}, identityRefused(err)
	}
	signed := claims
	if (claims.text("email") == "" || claims.lookup(p.options.RoleClaim) == nil) && found.provider.UserInfoEndpoint() != "" {
		page, err := found.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return Identity{}, providerFailed(errors.New("the userinfo response cannot be read")) // the error may quote the response
		}
		if page.Subject != verified.Subject { // OpenID Connect Core 1.0, 5.3.2
			return Identity{}, identityRefused(errors.New("the userinfo response is about another subject"))
		}
		more := claimSet{}
		if err := page.Claims(&more); err != nil {
			return Identity{}, providerFailed(err)
		}
		confirms := more // email_verified applies only to the address it came with
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
	return p.identityOf(verified, claims, signed), nil
}

// identityOf returns the identity of a token; signed are the claims of the token itself.
func (p *OIDCProvider) identityOf(verified *oidc.IDToken, claims, signed claimSet) Identity {
	first, last := personNames(claims)
	return Identity{
		Issuer: verified.Issuer, Subject: verified.Subject, Email: claims.text("email"), EmailVerified: claims.boolean("email_verified"),
		FirstName: first, LastName: last, Role: p.role(stringList(claims.lookup(p.options.RoleClaim))),
		SecondFactor: p.options.TrustMFA || slices.Contains(stringList(signed["amr"]), mfa),
	}
}

// isIssuedTo reports whether a token with a client of this service in its audience was issued to it. A token for several audiences must name it
// as the authorized party. Source: OpenID Connect Core 1.0, section 3.1.3.7, items 4 and 5.
func isIssuedTo(token *oidc.IDToken, clientID string) bool {
	var says struct {
		Party *string `json:"azp"`
	}
	switch {
	case token.Claims(&says) != nil:
		return false
	case says.Party == nil:
		return len(token.Audience) == 1
	}
	return *says.Party == clientID
}

// providerClockSkew is the tolerated difference between the provider's clock and the server's.
const providerClockSkew = time.Minute

// maxIssueSkew is how far the provider's clock may be ahead of the server's.
const maxIssueSkew = 5 * time.Minute

// isStale reports whether the authentication at the provider was older than requested when the sign-in began. It returns false if the provider
// does not state auth_time, and true if it states no time: a limit that cannot be checked is not met. Source: OpenID Connect Core 1.0, section
// 3.1.3.7.
func (p *OIDCProvider) isStale(token *oidc.IDToken, began time.Time) bool {
	var says struct {
		ProvenAt any `json:"auth_time"`
	}
	if p.options.MaxAge == 0 || token.Claims(&says) == nil && says.ProvenAt == nil {
		return false
	}
	seconds, err := strconv.ParseFloat(fmt.Sprint(says.ProvenAt), 64) // some providers send it as text
	return err != nil || time.Unix(int64(seconds), 0).Before(began.Add(-p.options.MaxAge-providerClockSkew))
}

// isFromFuture reports whether the provider states that it issued the token after now.
func isFromFuture(token *oidc.IDToken, now time.Time) bool {
	return token.IssuedAt.After(now.Add(maxIssueSkew))
}

// role returns the role of the first mapping that names one of the groups.
func (p *OIDCProvider) role(groups []string) authz.Role {
	for _, row := range p.options.Roles {
		if slices.Contains(groups, row.Group) {
			return row.Role
		}
	}
	return ""
}

// personNames returns first and last name. An account needs both, so missing ones are derived from other claims.
func personNames(claims claimSet) (first, last string) {
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
