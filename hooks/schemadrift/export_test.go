package schemadrift

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Describe returns the declarations of every collection of the database, by name.
func Describe(app core.App) (map[string]Collection, error) {
	found, err := app.FindAllCollections()
	if err != nil {
		return nil, fmt.Errorf("read the collections: %w", err)
	}
	described := make(map[string]Collection, len(found))
	for _, c := range found {
		if described[c.Name], err = describe(c); err != nil {
			return nil, err
		}
	}
	return described, nil
}

// ParsedCollections returns the collections with a stored form that differs from the expected one, which must be parsed.
func ParsedCollections(app core.App) (names []string, err error) {
	wanted, err := Expected()
	if err != nil {
		return nil, err
	}
	all, err := collections.SchemaRows(app)
	for _, s := range all {
		if !matchesExpected(s, wanted[s.Name]) {
			names = append(names, s.Name)
		}
	}
	return names, err
}
