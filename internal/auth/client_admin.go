package auth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Credentials hold a client and its secret, which is shown once. They refuse to print.
type Credentials struct {
	Client *collections.Client
	Secret string
}

// Format and LogValue hide the secret.
func (Credentials) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[credentials]") }
func (Credentials) LogValue() slog.Value       { return slog.StringValue("[credentials]") }

// Create creates a client. One with keys has a secret only on request.
func (mc *MachineClients) Create(app core.App, draft ClientDraft, by audit.Actor, now time.Time) (created Credentials, err error) {
	values, secret := draft.Apply(collections.ClientValues{Active: true}), secretPrefix+NewSecret()
	if draft.WithSecret || values.JWKSURL == "" && values.JWKS == nil {
		created.Secret = secret // otherwise it is discarded, and its hash matches nothing
	}
	err = app.RunInTransaction(func(tx core.App) error {
		if created.Client, err = collections.CreateClient(tx, values, HashSecret(secret), NewSecret(), now); err != nil {
			return err
		}
		if err := notifyOfClient(tx, "created the API client", values.Name, by, now); err != nil {
			return err
		}
		return appendClientEntry(tx, audit.ClientCreate, created.Client.Id, clientChanges(collections.ClientValues{}, values), by, now)
	})
	return created, err
}

// Change changes a client, effective with the next request. Tokens end if the client's keys change or it is deactivated.
func (mc *MachineClients) Change(app core.App, id string, draft ClientDraft, by audit.Actor, now time.Time) (client *collections.Client, err error) {
	err = mc.changeClient(app, id, func(tx core.App, found *collections.Client) error {
		client = found
		before := client.Values()
		after := draft.Apply(before)
		changed := clientChanges(before, after)
		if len(changed) == 0 {
			return nil
		}
		_, elsewhere := changed["jwks_url"]
		_, otherKeys := changed["jwks"]
		if elsewhere || otherKeys || before.Active && !after.Active {
			collections.EndClientTokens(client, NewSecret())
		}
		if err := collections.ChangeClient(tx, client, after, now); err != nil {
			return err
		}
		lostScope := slices.ContainsFunc(before.Scopes, func(scope string) bool { return !slices.Contains(after.Scopes, scope) })
		if lostScope || before.Active && !after.Active {
			if err := collections.DisableWebhooksOfClient(tx, id, now); err != nil {
				return err
			}
		}
		if extendsAccess(before, after) {
			if err := notifyOfClient(tx, "changed the access of the API client", after.Name, by, now); err != nil {
				return err
			}
		}
		return appendClientEntry(tx, audit.ClientUpdate, id, changed, by, now)
	})
	return client, err
}

// RotateSecret replaces the client's secret. The old secret and every token end immediately.
func (mc *MachineClients) RotateSecret(app core.App, id string, by audit.Actor, now time.Time) (created Credentials, err error) {
	created.Secret = secretPrefix + NewSecret()
	err = mc.changeClient(app, id, func(tx core.App, client *collections.Client) error {
		created.Client = client
		collections.EndClientTokens(client, NewSecret())
		if err := collections.ReplaceClientSecret(tx, client, HashSecret(created.Secret), now); err != nil {
			return err
		}
		if err := notifyOfClient(tx, "made a new secret of the API client", client.Values().Name, by, now); err != nil {
			return err
		}
		return appendClientEntry(tx, audit.ClientSecretRotate, id, nil, by, now)
	})
	return created, err
}

// ExtendsAccess reports whether a change gives a client other keys or addresses, or a further scope. It requires reauthentication.
func (d ClientDraft) ExtendsAccess(before collections.ClientValues) bool {
	return extendsAccess(before, d.Apply(before))
}

func extendsAccess(before, after collections.ClientValues) bool {
	return before.JWKSURL != after.JWKSURL || !bytes.Equal(before.JWKS, after.JWKS) || !slices.Equal(before.AllowedCIDRs, after.AllowedCIDRs) ||
		slices.ContainsFunc(after.Scopes, func(scope string) bool { return !slices.Contains(before.Scopes, scope) })
}

func notifyOfClient(tx core.App, what, name string, by audit.Actor, now time.Time) error {
	if by.Type != audit.ByUser {
		return nil
	}
	return notifications.NotifyOfProgramAccess(tx, fmt.Sprintf("%s %s %q.", by.Email, what, name), now)
}

// Delete deletes a client. Its actions stay in the audit trail under its name.
func (mc *MachineClients) Delete(app core.App, id string, by audit.Actor, now time.Time) error {
	return mc.changeClient(app, id, func(tx core.App, client *collections.Client) error {
		if err := collections.RemoveClient(tx, client); err != nil {
			return err
		}
		if err := collections.DisableWebhooksOfClient(tx, id, now); err != nil {
			return err
		}
		return appendClientEntry(tx, audit.ClientDelete, id, audit.Changes{"name": {Old: client.Values().Name}}, by, now)
	})
}

// changeClient applies a change to a client in a transaction and evicts the client from the cache.
func (mc *MachineClients) changeClient(app core.App, id string, change func(tx core.App, client *collections.Client) error) error {
	err := app.RunInTransaction(func(tx core.App) error {
		client, err := collections.FindClient(tx, id)
		if err != nil {
			return fault.OrMissing(err)
		}
		return change(tx, client)
	})
	mc.Evict(id)
	return err
}

func appendClientEntry(tx core.App, event audit.Event, id string, changed audit.Changes, by audit.Actor, now time.Time) error {
	return audit.Append(tx, audit.Entry{Event: event, Actor: by, ResourceType: audit.ResourceClient, ResourceID: id, Changes: changed}, now)
}

// clientChanges returns the changed values for the audit trail, and the key ids in place of keys.
func clientChanges(before, after collections.ClientValues) audit.Changes {
	changed := audit.Changes{}
	changed.Record("name", before.Name, after.Name)
	changed.Record("scopes", strings.Join(before.Scopes, " "), strings.Join(after.Scopes, " "))
	changed.Record("jwks_url", before.JWKSURL, after.JWKSURL)
	changed.Record("allowed_cidrs", strings.Join(before.AllowedCIDRs, " "), strings.Join(after.AllowedCIDRs, " "))
	changed.Record("active", before.Active, after.Active)
	if !bytes.Equal(before.JWKS, after.JWKS) {
		changed["jwks"] = audit.Change{Old: storedKeyIDs(before.JWKS), New: storedKeyIDs(after.JWKS)}
	}
	return changed
}

func storedKeyIDs(stored []byte) string {
	if stored == nil {
		return ""
	}
	keys, err := parseConfiguredKeys(stored)
	if err != nil {
		return ""
	}
	return strings.Join(keys.keyIDs(), " ")
}

func joinScopes(scopes authz.ClientScopes) string { return strings.Join(scopes.Strings(), " ") }

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
	// CurrentPassword is the caller's, without a fresh sign-in.
	CurrentPassword validate.String `json:"current_password"`
}

// NewClientBody is a request to create a machine client.
type NewClientBody struct {
	ClientBody

	WithSecret validate.Boolean `json:"with_secret"`
}

// ClientDraft applies the validated fields of a request to a client's stored values.
type ClientDraft struct {
	Apply func(before collections.ClientValues) collections.ClientValues
	// WithSecret requests a secret beside the keys.
	WithSecret bool
}

// ReadNew validates a request to create a client.
func (mc *MachineClients) ReadNew(b NewClientBody, c *validate.Checks) ClientDraft {
	for name, sent := range map[string]bool{"name": b.Name.Sent(), "scopes": b.Scopes.Sent()} {
		if !sent {
			c.Reject(name, "This field is required.")
		}
	}
	asked := c.Boolean("with_secret", b.WithSecret, false)
	draft := mc.ReadChange(b.ClientBody, c)
	draft.WithSecret = asked != nil && *asked
	return draft
}

// ReadChange validates a request to change a client. Omitted fields stay as they are.
func (mc *MachineClients) ReadChange(b ClientBody, c *validate.Checks) ClientDraft {
	name, scopes, ranges, active := readName(c, b.Name), readScopes(c, b.Scopes), readRanges(c, b.AllowedCIDRs), readActive(c, b.Active)
	at, keys := mc.readJWKSURL(c, b.JWKSURL), readJWKS(c, b.JWKS)
	if at != "" && keys != nil {
		c.Reject("jwks", "Give jwks_url or jwks, not both.")
	}
	return ClientDraft{Apply: func(v collections.ClientValues) collections.ClientValues {
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
	}}
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

func (mc *MachineClients) readJWKSURL(c *validate.Checks, f validate.String) string {
	if !f.Sent() {
		return ""
	}
	at := c.Text("jwks_url", f, validate.Optional(egress.MaxURLLength).Identifier())
	if at != "" && mc.options.Outbound.Check(at) != nil {
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
