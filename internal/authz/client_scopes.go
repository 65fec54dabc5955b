package authz

import (
	"slices"
	"strings"
)

// Client is the role of machine clients. It is not one of the seven roles and has no row in the policy: a client may do what its scopes allow,
// and role-dependent views treat it as having no role. Source: docs/decisions/roles.md, "Endpoints open to machine clients".
const Client Role = "client"

// ClientScope is a part of the API that is open to machine clients. A route names at most one; a route without a scope is closed to clients.
type ClientScope string

// Permission is what a route requires: an action of a user's role and optionally a scope of a client.
type Permission interface {
	Requires() (Action, ClientScope)
}

// Requires returns the action and no scope: an action alone is closed to clients.
func (a Action) Requires() (Action, ClientScope) { return a, "" }

// Or returns a permission for users with the action or clients with the scope.
func (a Action) Or(scope ClientScope) Permission { return actionOrScope{a, scope} }

type actionOrScope struct {
	action Action
	scope  ClientScope
}

func (s actionOrScope) Requires() (Action, ClientScope) { return s.action, s.scope }

// Scopes of the API. [SystemScope] returns those of the FHIR interface.
const (
	ScopeIngest           ClientScope = "ingest"
	ScopePatientsRead     ClientScope = "patients.read"
	ScopePatientsWrite    ClientScope = "patients.write"
	ScopeObservationsRead ClientScope = "observations.read"
	ScopeAlertsRead       ClientScope = "alerts.read"
	ScopeBillingRead      ClientScope = "billing.read"
	ScopeChangesRead      ClientScope = "changes.read"

	ScopeDevicesRead       ClientScope = "devices.read"
	ScopeDevicesWrite      ClientScope = "devices.write"
	ScopeTransmissionsRead ClientScope = "transmissions.read"
	ScopeThresholdsRead    ClientScope = "thresholds.read"
	ScopeWebhooksManage    ClientScope = "webhooks.manage"
	ScopeAlertsAcknowledge ClientScope = "alerts.acknowledge"
)

// ClientResources lists the FHIR resources a client may be allowed to read; "*" stands for all.
var ClientResources = []string{"*", "AuditEvent", "CareTeam", "Device", "Flag", "Group", "Observation", "Patient", "Practitioner", "Provenance", "QuestionnaireResponse", "RelatedPerson"}

// SystemScope returns the scope for reading and searching a FHIR resource in SMART 2 syntax.
func SystemScope(resource string) ClientScope { return ClientScope("system/" + resource + ".rs") }

// AnySystemScope admits a client with any scope of the FHIR interface; the handler decides which one it needs. It is never granted.
const AnySystemScope ClientScope = "system/?.rs"

// AllClientScopes lists every scope that can be granted.
var AllClientScopes = func() ClientScopes {
	all := ClientScopes{
		ScopeIngest, ScopePatientsRead, ScopePatientsWrite, ScopeObservationsRead, ScopeAlertsRead, ScopeBillingRead, ScopeChangesRead,
		ScopeDevicesRead, ScopeDevicesWrite, ScopeTransmissionsRead, ScopeThresholdsRead, ScopeWebhooksManage, ScopeAlertsAcknowledge,
	}
	for _, resource := range ClientResources {
		all = append(all, SystemScope(resource))
	}
	return all
}()

// The interactions of a scope of the FHIR interface. Source: SMART App Launch 2.2, "Scopes for requesting FHIR Resources".
const (
	InteractionRead   = "r"
	InteractionSearch = "s"
)

// SystemPart returns the part of [SystemScope] with one interaction. A token may be limited to it.
func SystemPart(resource, interaction string) ClientScope {
	return ClientScope("system/" + resource + "." + interaction)
}

// ParseClientScope parses a scope that a client can be granted. It accepts SMART 1's .read for SMART 2's .rs.
func ParseClientScope(text string) (ClientScope, bool) {
	if resource, old := strings.CutSuffix(text, ".read"); old && strings.HasPrefix(resource, "system/") {
		text = resource + ".rs"
	}
	scope := ClientScope(text)
	return scope, slices.Contains(AllClientScopes, scope)
}

// ParseTokenScope parses a scope that a token can have: one of a client, or a part of it.
func ParseTokenScope(text string) (ClientScope, bool) {
	if scope, known := ParseClientScope(text); known {
		return scope, true
	}
	return ClientScope(text), slices.Contains(systemParts, ClientScope(text))
}

// systemParts lists the scopes with one interaction.
var systemParts = func() (parts ClientScopes) {
	for _, interaction := range []string{InteractionRead, InteractionSearch} {
		for _, resource := range ClientResources {
			parts = append(parts, SystemPart(resource, interaction))
		}
	}
	return parts
}()

// system splits a scope of the FHIR interface; ok is false for others.
func (s ClientScope) system() (resource, interactions string, ok bool) {
	rest, ok := strings.CutPrefix(string(s), "system/")
	resource, interactions, _ = strings.Cut(rest, ".")
	return resource, interactions, ok
}

// ClientScopes are the scopes of a client or of one of its tokens.
type ClientScopes []ClientScope

// Allow reports whether the scopes include the needed one. An empty scope is never allowed.
func (s ClientScopes) Allow(needed ClientScope) bool {
	if needed == "" {
		return false
	}
	if needed == AnySystemScope {
		return slices.ContainsFunc(s, func(held ClientScope) bool { return strings.HasPrefix(string(held), "system/") })
	}
	resource, interactions, isSystem := needed.system()
	if !isSystem {
		return slices.Contains(s, needed)
	}
	for _, interaction := range interactions {
		if !slices.ContainsFunc(s, func(held ClientScope) bool {
			of, given, ok := held.system()
			return ok && (of == resource || of == "*") && strings.ContainsRune(given, interaction)
		}) {
			return false
		}
	}
	return interactions != ""
}

// Admit reports whether the scopes open an endpoint: whole, or by one interaction, which its handler checks.
func (s ClientScopes) Admit(needed ClientScope) bool {
	resource, _, isSystem := needed.system()
	return s.Allow(needed) || isSystem && (s.Allow(SystemPart(resource, InteractionRead)) || s.Allow(SystemPart(resource, InteractionSearch)))
}

// Narrow returns the scopes within a wildcard that are held; nil for another scope.
func (s ClientScopes) Narrow(wildcard ClientScope) (within ClientScopes) {
	of, interactions, ok := wildcard.system()
	if !ok || of != "*" {
		return nil
	}
	for _, resource := range ClientResources {
		if scope := SystemPart(resource, interactions); resource != "*" && s.Allow(scope) {
			within = append(within, scope)
		}
	}
	return within
}

// Intersect returns the scopes that both sides allow. Of "*" and a narrower scope it returns the narrower one.
func (s ClientScopes) Intersect(others ClientScopes) ClientScopes {
	within := ClientScopes{}
	for _, scope := range slices.Concat(AllClientScopes, systemParts) {
		if s.Allow(scope) && others.Allow(scope) && !within.Allow(scope) {
			within = append(within, scope)
		}
	}
	return within
}

// Strings returns the scopes as stored and sent.
func (s ClientScopes) Strings() []string {
	texts := make([]string, len(s))
	for i, scope := range s {
		texts[i] = string(scope)
	}
	return texts
}

// ParseClientScopes parses stored or signed scopes, or parts of them, and drops those that no longer exist.
func ParseClientScopes(texts []string) ClientScopes {
	scopes := ClientScopes{}
	for _, text := range texts {
		if scope, known := ParseTokenScope(text); known {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}
