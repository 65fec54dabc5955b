package emr

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// need is a thing that the service does at the EMR, and what it takes.
type need struct {
	does     string
	resource string
	// interactions are letters of SMART v2 scopes: create, read, update, delete, search.
	interactions string
	v1           string // read or write
}

// needs are all that the service does. Source: docs/fhir.md, "Scopes".
var needs = []need{
	{"deliver", "Observation", "c", "write"},
	{"look_up", "Observation", "rs", "read"},
	{"update", "Observation", "u", "write"},
	{"patients", "Patient", "rs", "read"},
}

// MissingScope is something that the service cannot do with what the EMR granted.
type MissingScope struct {
	Does string // deliver, look_up, update or patients
	// Scope is what to ask for, ScopeV2 the same as SMART App Launch 2 writes it.
	Scope, ScopeV2 string
}

// GrantedScopes are what deliveries may do, as the EMR said when it signed the service in last, or the person in whose name it works. An EMR
// that does not say has granted what it was asked for; so it is taken before the first sign-in. Source: RFC 6749, section 5.1.
func (c *Client) GrantedScopes() []string {
	if c.session != nil && c.main == tokenSource(c.session) {
		tokens, _ := c.session.current()
		return strings.Fields(cmp.Or(tokens.Scope, strings.Join(c.session.config.Scopes, " ")))
	}
	if c.service == nil {
		return nil
	}
	return strings.Fields(cmp.Or(c.LastSignIn().Scope, strings.Join(c.service.scopes, " ")))
}

// MissingScopes are what the service cannot do with the scopes granted for its deliveries, in the order of its needs.
func (c *Client) MissingScopes() []MissingScope {
	level := "system"
	if c.session != nil && c.main == tokenSource(c.session) {
		level = "user"
	}
	return missing(level, c.GrantedScopes())
}

func missing(level string, granted []string) (lacking []MissingScope) {
	for _, n := range needs {
		covered := !strings.ContainsFunc(n.interactions, func(interaction rune) bool {
			return !slices.ContainsFunc(granted, func(scope string) bool { return covers(scope, level, n.resource, interaction) })
		})
		if !covered {
			of := level + "/" + n.resource + "."
			lacking = append(lacking, MissingScope{n.does, of + n.v1, of + n.interactions})
		}
	}
	return lacking
}

// clinicalScope is a scope of either version; one of version 2 may be narrowed by a search.
// Source: SMART App Launch 1.0 and 2.2, "Scopes for requesting FHIR Resources".
var clinicalScope = regexp.MustCompile(`^(system|user|patient)/(\*|[A-Za-z]+)\.(read|write|\*|c?r?u?d?s?)(\?.*)?$`)

// covers reports whether a scope lets an interaction with a resource pass.
func covers(scope, level, resource string, interaction rune) bool {
	part := clinicalScope.FindStringSubmatch(scope)
	if part == nil || part[1] != level || part[2] != "*" && part[2] != resource {
		return false
	}
	letters, v1 := map[string]string{"read": "rs", "write": "cud", "*": "cruds"}[part[3]]
	if !v1 {
		letters = part[3]
	}
	return strings.ContainsRune(letters, interaction)
}
