// Package schemadrift compares PocketBase's collections with those that the migrations of this version create (API rules, options, types and fields),
// and restores what another process changed in the database, before the service accepts requests. It does not change tables.
package schemadrift

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// expectedJSON is the output of [Describe] for the migrations of this version. Run make golden after a migration changes a collection, or after PocketBase
// changes its defaults.
//
//go:embed rules.json
var expectedJSON []byte

// Collection maps each declaration of a collection to its value: rules, type, options except secrets, and "fields." with each field's name. It omits
// ids, timestamps, and indexes, which grant no access.
type Collection map[string]json.RawMessage

// fieldPrefix is the prefix of field names in a Collection.
const fieldPrefix = "fields."

// Difference is one declaration that differs from the expected one. A missing value is nil.
type Difference struct {
	Collection, What string
	Found, Wanted    json.RawMessage
}

// ruleNames are the rules that grant access to others than superusers if they are not nil.
var ruleNames = []string{"listRule", "viewRule", "createRule", "updateRule", "deleteRule", "authRule", "manageRule"}

// describe returns the declarations of a collection.
func describe(c *core.Collection) (Collection, error) {
	raw, err := json.Marshal(c) // omits secrets
	if err != nil {
		return nil, fmt.Errorf("collection %s: %w", c.Name, err)
	}
	all := Collection{}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("collection %s: %w", c.Name, err)
	}
	var fields []json.RawMessage
	if err := json.Unmarshal(all["fields"], &fields); err != nil {
		return nil, fmt.Errorf("fields of collection %s: %w", c.Name, err)
	}
	for _, name := range []string{"id", "name", "created", "updated", "indexes", "fields"} {
		delete(all, name)
	}
	for i, field := range fields {
		all[fieldPrefix+c.Fields[i].GetName()] = field
	}
	for name, value := range all {
		if all[name], err = canonical(value); err != nil {
			return nil, fmt.Errorf("%s of collection %s: %w", name, c.Name, err)
		}
	}
	return all, nil
}

// canonical re-encodes JSON, so that equal values have equal bytes.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	var value any
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber()
	if err := numbers.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// Expected returns the collections that the migrations of this version create.
func Expected() (map[string]Collection, error) {
	all := map[string]Collection{}
	if err := json.Unmarshal(expectedJSON, &all); err != nil {
		return nil, fmt.Errorf("parse the expected collections: %w", err)
	}
	return all, nil
}

// Differences returns how a collection differs from the expected one. It ignores added fields, but not removed ones.
func Differences(name string, found, wanted Collection) (all []Difference) {
	for _, what := range slices.Sorted(maps.Keys(wanted)) {
		if !bytes.Equal(found[what], wanted[what]) {
			all = append(all, Difference{name, what, found[what], wanted[what]})
		}
	}
	for _, what := range slices.Sorted(maps.Keys(found)) {
		if _, known := wanted[what]; !known && !strings.HasPrefix(what, fieldPrefix) {
			all = append(all, Difference{Collection: name, What: what, Found: found[what]})
		}
	}
	return all
}

// publicRules returns the rules of an unknown collection that grant access to others than superusers.
func publicRules(name string, found Collection) (all []Difference) {
	for _, rule := range ruleNames {
		if value, ok := found[rule]; ok && string(value) != "null" {
			all = append(all, Difference{name, rule, value, json.RawMessage("null")})
		}
	}
	return all
}

// Check compares every collection with the migrations. It fails if an expected collection is missing.
func Check(app core.App) ([]Difference, error) {
	wanted, err := Expected()
	if err != nil {
		return nil, err
	}
	found, err := collections.SchemaRows(app)
	if err != nil {
		return nil, err
	}
	var all []Difference
	for _, one := range found {
		known, isExpected := wanted[one.Name]
		delete(wanted, one.Name)
		if isExpected && matchesExpected(one, known) {
			continue
		}
		c, err := one.Load(app)
		if err != nil {
			return nil, err
		}
		described, err := describe(c)
		switch {
		case err != nil:
			return nil, err
		case isExpected:
			all = append(all, Differences(one.Name, described, known)...)
		default:
			all = append(all, publicRules(one.Name, described)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		err = errors.Join(err, fmt.Errorf("collection %s is gone: restore a backup", name))
	}
	return all, err
}

// RequestedChanges returns how a submitted collection differs from the one in the database; a new collection is compared with an empty one.
func RequestedChanges(app core.App, sent *core.Collection) ([]Difference, error) {
	requested, err := describe(sent)
	if err != nil {
		return nil, err
	}
	current := Collection{}
	if known, err := app.FindCollectionByNameOrId(sent.Id); err == nil {
		if current, err = describe(known); err != nil {
			return nil, err
		}
	}
	var all []Difference
	names := maps.Clone(current)
	maps.Copy(names, requested)
	for _, what := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(current[what], requested[what]) {
			all = append(all, Difference{sent.Name, what, current[what], requested[what]})
		}
	}
	return all, nil
}
