package web

import (
	"fmt"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
)

// permitClient refuses a client what no scope of its token opens, and everything from an address it is not to come from.
// Source: docs/decisions/roles.md, "Endpoints open to machine clients".
func (c *Call) permitClient(row Route) error {
	client := c.Caller.Client
	switch {
	case !client.LetsIn(c.Address):
		return fault.New(fault.Forbidden, "permission_denied", "This client is not let in from this address.")
	case !client.Scopes.Allow(row.Scope):
		return c.insufficientScope(row.Scope)
	}
	c.Scope = authz.All
	return nil
}

// NeedToo refuses a client what tells of more than its route's scope opens, unless it has the other scopes, too. People are not asked for scopes.
// Source: docs/decisions/roles.md, "Endpoints open to machine clients".
func (c *Call) NeedToo(scopes ...authz.ClientScope) error {
	if c.Caller.Client == nil {
		return nil
	}
	for _, scope := range scopes {
		if !c.Caller.Client.Scopes.Allow(scope) {
			return c.insufficientScope(scope)
		}
	}
	return nil
}

// insufficientScope says which scope is missing, where one would do. Source: RFC 6750, section 3.1.
func (c *Call) insufficientScope(needed authz.ClientScope) error {
	if needed == "" {
		c.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
		return fault.New(fault.Forbidden, "insufficient_scope", "This is not open to clients.")
	}
	c.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer error=%q, scope=%q", "insufficient_scope", needed))
	return fault.New(fault.Forbidden, "insufficient_scope", fmt.Sprintf("This needs the scope %s.", needed))
}
