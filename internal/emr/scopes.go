package emr

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// requirement is an operation of the service at the EMR, and the scope that it requires.
type requirement struct {
	operation string
	resource  string
	// interactions are letters of SMART v2 scopes: create, read, update, delete, search.
	interactions string
	v1           string // read or write
}

// requirements are all operations of the service. Source: docs/fhir.md, "Scopes".
var requirements = []requirement{
	{"deliver", "Observation", "c", "write"},
	{"look_up", "Observation", "rs", "read"},
	{"update", "Observation", "u", "write"},
	{"patients", "Patient", "rs", "read"},
	{"deliver_documents", documentType, "c", "write"},
	{"look_up_documents", documentType, "rs", "read"},
	{"update_documents", documentType, "u", "write"},
}

// needs reports whether the service uses an operation with the way of delivery. Reports that only people send need no search.
func (c *Client) needs(n requirement) bool {
	way := c.Plan().Mode
	switch {
	case n.resource == "Observation":
		return way != ModeDocument
	case n.resource != documentType:
		return true
	case n.interactions == "c":
		return c.TakesDocuments()
	}
	return (way == ModeDocument || way == ModeBoth) && (n.interactions != "u" || c.updatesDocuments())
}

// MissingScope is an operation that the granted scopes do not permit.
type MissingScope struct {
	Does string // the operation of a requirement
	// Scope is the scope to request, ScopeV2 the same in SMART App Launch 2 syntax.
	Scope, ScopeV2 string
}

// GrantedScopes returns the scopes that the EMR granted to deliveries in the last sign-in of the service, or of the connected person. An EMR
// that returns no scope has granted the requested ones, which are also assumed before the first sign-in. Source: RFC 6749, section 5.1.
func (c *Client) GrantedScopes() []string {
	if c.session != nil && c.mainSource == tokenSource(c.session) {
		tokens, _ := c.session.current()
		return strings.Fields(cmp.Or(tokens.Scope, strings.Join(c.session.config.Scopes, " ")))
	}
	if c.service == nil {
		return nil
	}
	return strings.Fields(cmp.Or(c.LastSignIn().Scope, strings.Join(c.service.scopes, " ")))
}

// MissingScopes returns the operations that the scopes granted to deliveries do not permit, in the order of requirements.
func (c *Client) MissingScopes() []MissingScope {
	level := "system"
	if c.session != nil && c.mainSource == tokenSource(c.session) {
		level = "user"
	}
	return c.missing(level, c.GrantedScopes())
}

func (c *Client) missing(level string, granted []string) (lacking []MissingScope) {
	for _, n := range requirements {
		covered := !c.needs(n) || !strings.ContainsFunc(n.interactions, func(interaction rune) bool {
			return !slices.ContainsFunc(granted, func(scope string) bool { return covers(scope, level, n.resource, interaction) })
		})
		if !covered {
			of := level + "/" + n.resource + "."
			lacking = append(lacking, MissingScope{n.operation, of + n.v1, of + n.interactions})
		}
	}
	return lacking
}

// clinicalScope is a scope of either version; one of version 2 may be narrowed by a search.
// Source: SMART App Launch 1.0 and 2.2, "Scopes for requesting FHIR Resources".
var clinicalScope = regexp.MustCompile(`^(system|user|patient)/(\*|[A-Za-z]+)\.(read|write|\*|c?r?u?d?s?)(\?.*)?$`)

// covers reports whether a scope permits an interaction with a resource.
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
