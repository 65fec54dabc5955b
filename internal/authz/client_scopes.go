package authz

import (
	"slices"
	"strings"
)

// Client is what a machine acts as that signs in with credentials of its own. It is no role of the contract and has no row in the policy: what it
// may do is what its scopes open, and what is shown by role it is shown as somebody nobody knows.
// Source: docs/decisions/roles.md, "Endpoints open to machine clients".
const Client Role = "client"

// ClientScope is a part of the service that is opened to a client. A route names at most one; what names none is closed to clients.
type ClientScope string

// Permission is what a route asks for: of people an action, and of clients perhaps a scope.
type Permission interface {
	Asked() (Action, ClientScope)
}

// Asked is the action alone: what names nothing else is closed to clients.
func (a Action) Asked() (Action, ClientScope) { return a, "" }

// Or is the action of people, or the scope of clients.
func (a Action) Or(scope ClientScope) Permission { return either{a, scope} }

type either struct {
	action Action
	scope  ClientScope
}

func (e either) Asked() (Action, ClientScope) { return e.action, e.scope }

// The scopes of the API. Those of the FHIR interface are made by [SystemScope].
const (
	ScopeIngest           ClientScope = "ingest"
	ScopePatientsRead     ClientScope = "patients.read"
	ScopePatientsWrite    ClientScope = "patients.write"
	ScopeObservationsRead ClientScope = "observations.read"
	ScopeAlertsRead       ClientScope = "alerts.read"
	ScopeBillingRead      ClientScope = "billing.read"
	ScopeChangesRead      ClientScope = "changes.read"
)

// ClientResources are the FHIR resources that a client may be let read; the star stands for all of them.
var ClientResources = []string{"*", "AuditEvent", "CareTeam", "Device", "Flag", "Group", "Observation", "Patient", "Practitioner", "Provenance"}

// SystemScope is the scope for reading and searching a FHIR resource, as SMART 2 writes it.
func SystemScope(resource string) ClientScope { return ClientScope("system/" + resource + ".rs") }

// AnySystemScope opens to a client that has any of the scopes of the FHIR interface; which of them it needs, is the handler's to say. Nobody is given
// it.
const AnySystemScope ClientScope = "system/?.rs"

// AllClientScopes lists every scope there is.
var AllClientScopes = func() ClientScopes {
	all := ClientScopes{
		ScopeIngest, ScopePatientsRead, ScopePatientsWrite, ScopeObservationsRead, ScopeAlertsRead, ScopeBillingRead, ScopeChangesRead,
	}
	for _, resource := range ClientResources {
		all = append(all, SystemScope(resource))
	}
	return all
}()

// ParseClientScope reads a scope as somebody wrote it. SMART's first version said .read for what is .rs now.
func ParseClientScope(text string) (ClientScope, bool) {
	if resource, old := strings.CutSuffix(text, ".read"); old && strings.HasPrefix(resource, "system/") {
		text = resource + ".rs"
	}
	scope := ClientScope(text)
	return scope, slices.Contains(AllClientScopes, scope)
}

// ClientScopes are what a client or one of its tokens is allowed.
type ClientScopes []ClientScope

// Allow reports whether they open what a scope is needed for; nothing is open that needs none.
func (s ClientScopes) Allow(needed ClientScope) bool {
	if needed == "" {
		return false
	}
	if needed == AnySystemScope {
		return slices.ContainsFunc(s, func(held ClientScope) bool { return strings.HasPrefix(string(held), "system/") })
	}
	return slices.Contains(s, needed) || strings.HasPrefix(string(needed), "system/") && slices.Contains(s, SystemScope("*"))
}

// Within are what both they and others allow: of a star and a narrower scope the narrower one, whichever side has it.
func (s ClientScopes) Within(others ClientScopes) ClientScopes {
	within := ClientScopes{}
	for _, scope := range AllClientScopes {
		if s.Allow(scope) && others.Allow(scope) && !within.Allow(scope) {
			within = append(within, scope)
		}
	}
	return within
}

// Texts are the scopes as they are stored and sent.
func (s ClientScopes) Texts() []string {
	texts := make([]string, len(s))
	for i, scope := range s {
		texts[i] = string(scope)
	}
	return texts
}

// ReadClientScopes reads what was stored or signed; what is no scope any more is left out.
func ReadClientScopes(texts []string) ClientScopes {
	scopes := ClientScopes{}
	for _, text := range texts {
		if scope, known := ParseClientScope(text); known {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}
