package schemadrift

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/security"

	"github.com/vigilhealth/vigil/internal/audit"
)

// Restore restores the declarations of collections to those of the migrations, audits each changed collection, and returns the differences. It
// writes the declarations directly: saving them would make PocketBase alter the tables to match. Source: docs/decisions/security.md, "Schema drift".
func Restore(app core.App, now time.Time) ([]Difference, error) {
	all, err := Check(app)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	err = app.RunInTransaction(func(tx core.App) error {
		for start := 0; start < len(all); {
			end := start
			for end < len(all) && all[end].Collection == all[start].Collection {
				end++
			}
			if err := restore(tx, all[start:end], now); err != nil {
				return err
			}
			start = end
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("restore the collections: %w", err)
	}
	if err := app.ReloadCachedCollections(); err != nil {
		return nil, fmt.Errorf("read the collections again: %w", err)
	}
	left, err := Check(app) // a trigger in the database may have reverted the update
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("%d differences remain after the restore, the first is %s of collection %s: look for triggers in the database, or restore a backup",
			len(left), left[0].What, left[0].Collection)
	}
	return all, nil
}

// restore restores one collection.
func restore(tx core.App, what []Difference, now time.Time) error {
	name := what[0].Collection
	c, err := tx.FindCollectionByNameOrId(name)
	if err != nil {
		return fmt.Errorf("collection %s: %w", name, err)
	}
	patch := map[string]json.RawMessage{}
	for _, d := range what {
		if d.Wanted == nil {
			continue // belongs to another collection type, and disappears with it
		}
		if field, ok := strings.CutPrefix(d.What, fieldPrefix); !ok {
			patch[d.What] = d.Wanted
		} else if err := restoreField(c, field, d.Wanted); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(patch)
	if err == nil {
		err = json.Unmarshal(raw, c)
	}
	if err != nil {
		return fmt.Errorf("collection %s: %w", name, err)
	}
	replaceLostSecrets(c)
	columns, err := c.DBExport(tx)
	if err != nil {
		return fmt.Errorf("collection %s: %w", name, err)
	}
	delete(columns, "id")
	if _, err := tx.NonconcurrentDB().Update("_collections", columns, dbx.HashExp{"id": c.Id}).Execute(); err != nil {
		return fmt.Errorf("store collection %s: %w", name, err)
	}
	return audit.Append(tx, audit.Entry{
		Event: audit.RulesRestore, Actor: audit.System(), ResourceType: audit.ResourceCollection, ResourceID: name, Changes: Changes(what),
	}, now)
}

// restoreField replaces a field of a collection at its position, or adds it.
func restoreField(c *core.Collection, name string, wanted json.RawMessage) error {
	position := len(c.Fields)
	for i, field := range c.Fields {
		if field.GetName() == name {
			position = i
		}
	}
	c.Fields.RemoveByName(name)
	if err := c.Fields.AddMarshaledJSONAt(min(position, len(c.Fields)), wanted); err != nil {
		return fmt.Errorf("field %s of collection %s: %w", name, c.Name, err)
	}
	return nil
}

// replaceLostSecrets creates token secrets for an auth collection that lost them with its type.
func replaceLostSecrets(c *core.Collection) {
	if !c.IsAuth() {
		return
	}
	for _, token := range []*core.TokenConfig{&c.AuthToken, &c.PasswordResetToken, &c.EmailChangeToken, &c.VerificationToken, &c.FileToken} {
		if token.Secret == "" {
			token.Secret = security.RandomString(50)
		}
	}
}

// Changes returns differences as audit changes. Descriptions contain no secrets.
func Changes(what []Difference) audit.Changes {
	changes := audit.Changes{}
	for _, d := range what {
		changes[d.What] = audit.Change{Old: orNil(d.Found), New: orNil(d.Wanted)}
	}
	return changes
}

func orNil(raw json.RawMessage) any {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	return raw
}
