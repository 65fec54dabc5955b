package auth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/validate"
)

const (
	maxName   = 100
	maxRanges = 50
	msgTexts  = "Must be a list of strings."
)

// ClientBody is a request to create or change a machine client.
type ClientBody struct {
	Name         validate.String                   `json:"name"`
	Scopes       validate.Field[[]validate.String] `json:"scopes"`
	JWKSURL      validate.String                   `json:"jwks_url"`
	JWKS         validate.Field[json.RawMessage]   `json:"jwks"`
	AllowedCIDRs validate.Field[[]validate.String] `json:"allowed_cidrs"`
	Active       validate.Boolean                  `json:"active"`
}

// ClientDraft applies the validated fields of a request to a client's stored values.
type ClientDraft func(before collections.ClientValues) collections.ClientValues

// ReadNew validates a request to create a client.
func (e *MachineClients) ReadNew(b ClientBody, c *validate.Checks) ClientDraft {
	for name, sent := range map[string]bool{"name": b.Name.Sent(), "scopes": b.Scopes.Sent()} {
		if !sent {
			c.Reject(name, "This field is required.")
		}
	}
	return e.ReadChange(b, c)
}

// ReadChange validates a request to change a client. Omitted fields stay as they are.
func (e *MachineClients) ReadChange(b ClientBody, c *validate.Checks) ClientDraft {
	name, scopes, ranges, active := readName(c, b.Name), readScopes(c, b.Scopes), readRanges(c, b.AllowedCIDRs), readActive(c, b.Active)
	at, keys := e.readJWKSURL(c, b.JWKSURL), readJWKS(c, b.JWKS)
	if at != "" && keys != nil {
		c.Reject("jwks", "Give jwks_url or jwks, not both.")
	}
	return func(v collections.ClientValues) collections.ClientValues {
		if b.Name.Sent() {
			v.Name = name
		}
		if b.Scopes.Sent() {
			v.Scopes = scopes
		}
		if b.AllowedCIDRs.Sent() {
			v.AllowedCIDRs = ranges
		}
		if b.Active.Sent() {
			v.Active = active
		}
		if b.JWKSURL.Sent() {
			v.JWKSURL = at
		}
		if b.JWKS.Sent() {
			v.JWKS = keys
		}
		switch { // jwks_url and jwks replace each other
		case at != "":
			v.JWKS = nil
		case keys != nil:
			v.JWKSURL = ""
		}
		return v
	}
}

func readName(c *validate.Checks, f validate.String) string {
	if !f.Sent() {
		return ""
	}
	return c.Text("name", f, validate.Required(maxName))
}

func readActive(c *validate.Checks, f validate.Boolean) bool {
	if !f.Sent() {
		return false
	}
	active := c.Boolean("active", f, true)
	return active != nil && *active
}

func readScopes(c *validate.Checks, f validate.Field[[]validate.String]) []string {
	scopes := authz.ClientScopes{}
	for name, text := range validate.Texts(c, "scopes", f, len(authz.AllClientScopes)*2, msgTexts, validate.Required(0).Identifier()) {
		scope, known := authz.ParseClientScope(text)
		if !known {
			c.Reject(name, "Not a valid scope.")
		} else if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes.Strings()
}

func readRanges(c *validate.Checks, f validate.Field[[]validate.String]) []string {
	ranges := []string{}
	for name, text := range validate.Texts(c, "allowed_cidrs", f, maxRanges, msgTexts, validate.Required(0).Identifier()) {
		r, err := parseRange(text)
		if err != nil {
			c.Reject(name, "Must be an address or a range of addresses, such as 192.0.2.0/24.")
		} else if !slices.Contains(ranges, r.String()) {
			ranges = append(ranges, r.String())
		}
	}
	return ranges
}

func parseRange(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		at, err := netip.ParseAddr(text)
		if err != nil || at.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("not an address: %w", err)
		}
		return netip.PrefixFrom(at.Unmap(), at.Unmap().BitLen()), nil
	}
	r, err := netip.ParsePrefix(text)
	if err == nil && r.Addr().Is4In6() {
		err = fmt.Errorf("a range of IPv4 addresses in IPv6")
	}
	return r.Masked(), err
}

func (e *MachineClients) readJWKSURL(c *validate.Checks, f validate.String) string {
	if !f.Sent() {
		return ""
	}
	at := c.Text("jwks_url", f, validate.Optional(egress.MaxURLLength).Identifier())
	if at != "" && e.options.Outbound.Check(at) != nil {
		c.Reject("jwks_url", "Must be an https address of a public host.")
		return ""
	}
	return at
}

func readJWKS(c *validate.Checks, f validate.Field[json.RawMessage]) json.RawMessage {
	if !f.Sent() || f.Null() {
		return nil
	}
	if len(f.Value) > maxKeySetBytes {
		c.Reject("jwks", "Ensure this field has no more than 65536 bytes.")
		return nil
	}
	keys, err := parseConfiguredKeys(bytes.TrimSpace(f.Value))
	if err != nil {
		c.Reject("jwks", capitalize(err.Error())+".")
		return nil
	}
	stored, err := keys.encode()
	if err != nil {
		c.Reject("jwks", capitalize(errUnsupportedKey.Error())+".")
	}
	return stored
}

func capitalize(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
