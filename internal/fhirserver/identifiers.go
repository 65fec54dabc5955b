package fhirserver

import "github.com/pocketbase/dbx"

// numbering is a system of identifiers, and how resources are found by theirs.
type numbering struct {
	system string
	find   func(by string, numbers []string) dbx.Expression
	by     string
}

// identifiedBy keeps what has one of the identifiers. A system with a bar and nothing behind it means whatever has an identifier of that system.
// Source: FHIR R4, search, "token".
func (s *Search) identifiedBy(v values, systems ...numbering) string {
	conditions := []dbx.Expression{}
	for _, n := range systems {
		numbers := []string{}
		for _, t := range v.tokens() {
			switch {
			case t.code == "" && t.system == "":
				return "Must be an identifier, after its system and a bar if need be."
			case t.code == "" && t.system == n.system:
				conditions = append(conditions, s.Kind.table.Has(n.by))
			case t.is(n.system, t.code):
				numbers = append(numbers, t.code)
			}
		}
		conditions = append(conditions, n.find(n.by, numbers))
	}
	s.either(conditions)
	return ""
}
