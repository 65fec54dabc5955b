package auth

import (
	"net/netip"
	"slices"

	"github.com/vigilhealth/vigil/internal/authz"
)

// Client is a machine client that makes a request, as loaded from the database.
type Client struct {
	ID, Name string
	// Scopes are the scopes of the token that the client still has.
	Scopes authz.ClientScopes
	// From lists the allowed address ranges; empty allows every address.
	From []netip.Prefix
}

// CallerOf returns the client as a caller.
func CallerOf(client *Client) Caller {
	return Caller{RecordID: client.ID, Role: authz.Client, Client: client}
}

// AllowsAddress reports whether the client may send requests from the address. An invalid address is allowed only without ranges.
func (c *Client) AllowsAddress(address string) bool {
	if len(c.From) == 0 {
		return true
	}
	at, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(c.From, func(r netip.Prefix) bool { return r.Contains(at.Unmap()) })
}

// IsAuthenticated reports whether the caller is a known user or client.
func (c Caller) IsAuthenticated() bool { return c.ID != 0 || c.Client != nil }
