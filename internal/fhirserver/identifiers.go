package fhirserver

import "github.com/pocketbase/dbx"

// identifierSystem is a system of identifiers with the condition that searches it.
type identifierSystem struct {
	system string
	find   func(by string, numbers []string) dbx.Expression
	by     string
}

// filterByIdentifiers restricts the search to resources with one of the identifiers. A system followed by a bar and no value matches any identifier of the
// system.
// Source: FHIR R4, search, "token".
func (s *Search) filterByIdentifiers(v values, systems ...identifierSystem) string {
	conditions := []dbx.Expression{}
	for _, n := range systems {
		numbers := []string{}
		for _, t := range v.tokens() {
			switch {
			case t.code == "" && t.system == "":
				return "Must be an identifier, optionally after its system and a bar."
			case t.code == "" && t.system == n.system:
				conditions = append(conditions, s.Type.table.Has(n.by))
			case t.is(n.system, t.code):
				numbers = append(numbers, t.code)
			}
		}
		conditions = append(conditions, n.find(n.by, numbers))
	}
	s.addAnyOf(conditions)
	return ""
}
