package auth

import (
	"net/netip"
	"slices"

	"github.com/vigilhealth/vigil/internal/authz"
)

// Client is a machine that makes a request, as the database knew it when the request came in. How one signs in is the matter of the package clients.
type Client struct {
	ID, Name string
	// Scopes are those of the token that the client still has.
	Scopes authz.ClientScopes
	// From are the ranges of addresses from which it is let in; none is from anywhere.
	From []netip.Prefix
}

// CallerOf is a client as the one who makes a request.
func CallerOf(client *Client) Caller {
	return Caller{RecordID: client.ID, Role: authz.Client, Client: client}
}

// LetsIn reports whether the client may come from an address; "" is none that anybody knows.
func (c *Client) LetsIn(address string) bool {
	if len(c.From) == 0 {
		return true
	}
	at, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(c.From, func(r netip.Prefix) bool { return r.Contains(at.Unmap()) })
}

// Known reports whether it is known who makes the request: a person or a client.
func (c Caller) Known() bool { return c.ID != 0 || c.Client != nil }
