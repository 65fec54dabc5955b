// Package rules knows what PocketBase's collections are to allow: their API rules, options, types and fields as the migrations of this version
// make them, and nothing else. What somebody changed in the file while the service was stopped is put right before a door opens. It refuses to
// know why a rule is as it is, and to change tables: it only holds what is declared about them against what was made.
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

// made is what the migrations of this version make, as [Describe] says it: written anew by make golden, whenever a migration touches a
// collection or PocketBase changes what it puts into one.
//
//go:embed rules.json
var made []byte

// Collection is all that is declared about a collection, by name: its rules, type, options but secrets, and "fields." with the name of each.
// Ids and the times of changes are left out, and indexes, which open nothing.
type Collection map[string]json.RawMessage

// fieldPrefix stands before the names of fields.
const fieldPrefix = "fields."

// Difference is one thing that is otherwise than it should be. A value that is not there is nil.
type Difference struct {
	Collection, What string
	Found, Wanted    json.RawMessage
}

// ruleNames are what lets others in than superusers, when it is not nil.
var ruleNames = []string{"listRule", "viewRule", "createRule", "updateRule", "deleteRule", "authRule", "manageRule"}

// describe says what is declared about a collection.
func describe(c *core.Collection) (Collection, error) {
	raw, err := json.Marshal(c) // leaves secrets out
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

// canonical is the same JSON, always written in one way.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	var value any
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber()
	if err := numbers.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// Made is what the migrations of this version make.
func Made() (map[string]Collection, error) {
	all := map[string]Collection{}
	if err := json.Unmarshal(made, &all); err != nil {
		return nil, fmt.Errorf("what the migrations make: %w", err)
	}
	return all, nil
}

// Differences says in what a collection is otherwise than it should be. Fields that were added by hand are nobody's business; those that
// were taken away are.
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

// open are the rules of a collection that nobody knows and that lets others in than superusers.
func open(name string, found Collection) (all []Difference) {
	for _, rule := range ruleNames {
		if value, there := found[rule]; there && string(value) != "null" {
			all = append(all, Difference{name, rule, value, json.RawMessage("null")})
		}
	}
	return all
}

// Check compares every collection with what the migrations make. It fails when one of ours is not there at all.
func Check(app core.App) ([]Difference, error) {
	wanted, err := Made()
	if err != nil {
		return nil, err
	}
	found, err := collections.SchemaRows(app)
	if err != nil {
		return nil, err
	}
	var all []Difference
	for _, one := range found {
		known, ours := wanted[one.Name]
		delete(wanted, one.Name)
		if ours && asMade(one, known) {
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
		case ours:
			all = append(all, Differences(one.Name, described, known)...)
		default:
			all = append(all, open(one.Name, described)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		err = errors.Join(err, fmt.Errorf("collection %s is gone: restore a backup", name))
	}
	return all, err
}

// Wished says in what a collection that somebody sends is otherwise than the one in the database; a new one is compared with nothing.
func Wished(app core.App, sent *core.Collection) ([]Difference, error) {
	wished, err := describe(sent)
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
	maps.Copy(names, wished)
	for _, what := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(current[what], wished[what]) {
			all = append(all, Difference{sent.Name, what, current[what], wished[what]})
		}
	}
	return all, nil
}
