package web

import (
	"fmt"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
)

// permitClient denies a client without the scope of the row, and every request from an address that the client may not
// use. Source: docs/decisions/roles.md, "Endpoints open to machine clients".
func (c *Call) permitClient(row Route) error {
	client := c.Caller.Client
	switch {
	case !client.AllowsAddress(c.Address):
		return fault.New(fault.Forbidden, "permission_denied", "This client may not connect from this address.")
	case !client.Scopes.Admit(row.Scope):
		return c.insufficientScope(row.Scope)
	}
	c.Reach = authz.All
	return nil
}

// RequireScopes denies a client an answer that shows more than the row's scope covers, unless it has the other
// scopes too. Users need no scopes. Source: docs/decisions/roles.md, "Endpoints open to machine clients".
func (c *Call) RequireScopes(scopes ...authz.ClientScope) error {
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

// insufficientScope names the missing scope, if one would do. Source: RFC 6750, section 3.1.
func (c *Call) insufficientScope(needed authz.ClientScope) error {
	if needed == "" {
		c.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
		return fault.New(fault.Forbidden, "insufficient_scope", "This endpoint is not available to machine clients.")
	}
	c.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer error=%q, scope=%q", "insufficient_scope", needed))
	return fault.New(fault.Forbidden, "insufficient_scope", fmt.Sprintf("This needs the scope %s.", needed))
}
