package hooks

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

// clockwork are columns that change with every write and say nothing of it.
var clockwork = []string{"created", "updated", "created_at", "updated_at"}

// differences are the fields in which two states of a record differ, with both values. Of a password or another secret, which are the hidden
// fields, the name alone is kept.
func differences(before, after *core.Record) audit.Changes {
	changes := audit.Changes{}
	for _, field := range after.Collection().Fields {
		name := field.GetName()
		if name == core.FieldNameId || slices.Contains(clockwork, name) || same(field, before, after) {
			continue
		}
		switch {
		case field.GetHidden() || field.Type() == core.FieldTypePassword:
			changes[name] = audit.Change{}
		case field.Type() == collections.PHIFieldType:
			changes[name] = audit.Change{Old: shown(before.GetString(name)), New: shown(after.GetString(name))}
		default:
			changes[name] = audit.Change{Old: before.Get(name), New: after.Get(name)}
		}
	}
	return changes
}

// same reports whether a field holds the same in both; of passwords their hashes are compared.
func same(field core.Field, before, after *core.Record) bool {
	old, failed := json.Marshal(held(field, before))
	fresh, err := json.Marshal(held(field, after))
	return failed == nil && err == nil && bytes.Equal(old, fresh)
}

func held(field core.Field, record *core.Record) any {
	if password, ok := field.(*core.PasswordField); ok {
		hash, _ := password.DriverValue(record) // it only reads
		return hash
	}
	return record.Get(field.GetName())
}

// shown is a sealed text for the entry, which seals it again; nil for none.
func shown(text string) any {
	if text == "" {
		return nil
	}
	return phi.Text(text)
}
