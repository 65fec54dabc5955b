package collections

import (
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// RingKey is an encryption key under which stored values may be sealed. Check opens under that key only; Uses counts the processes that
// started to seal under it.
type RingKey struct {
	ID    string `db:"key_id"`
	Check string `db:"sealed"`
	Uses  int    `db:"uses"`
}

// RingKeys returns the registered keys in order of id.
func RingKeys(app core.App) ([]RingKey, error) {
	return queryAll[RingKey](app, "read the registered keys", `SELECT key_id, sealed, uses FROM ring_keys ORDER BY key_id`, nil)
}

// RegisterRingKey records that a process is about to seal under a key of its ring.
func RegisterRingKey(tx core.App, ring *phi.KeyRing, keyID string) error {
	check, err := ring.CheckValue(keyID)
	if err == nil {
		_, err = tx.DB().NewQuery(`INSERT INTO ring_keys (key_id, sealed, uses) VALUES ({:id}, {:check}, 1)
			ON CONFLICT (key_id) DO UPDATE SET uses = uses + 1`).Bind(dbx.Params{"id": keyID, "check": check}).Execute()
	}
	return wrap(err, "register key %s", keyID)
}

// DeleteRingKey deletes a key that no value needs; done is false if another process started to seal under it in between.
func DeleteRingKey(tx core.App, key RingKey) (done bool, err error) {
	n, err := execCounted(tx, "delete key "+key.ID, `DELETE FROM ring_keys WHERE key_id = {:id} AND uses = {:uses}`, dbx.Params{"id": key.ID, "uses": key.Uses})
	return n == 1, err
}

// ServiceKey is a key that the running service has announced; it seals under one of them.
type ServiceKey struct {
	ID    string `db:"key_id"`
	Check string `db:"sealed"`
	Seals bool   `db:"seals"`
}

// ServiceKeys returns the keys of the running service, or of one that was killed.
func ServiceKeys(app core.App) ([]ServiceKey, error) {
	return queryAll[ServiceKey](app, "read the service's keys", `SELECT key_id, sealed, seals FROM service_keys ORDER BY key_id`, nil)
}

// StoreServiceKeys replaces the announced keys by those of a ring.
func StoreServiceKeys(tx core.App, ring *phi.KeyRing) error {
	if err := DeleteServiceKeys(tx); err != nil {
		return err
	}
	for _, id := range ring.KeyIDs() {
		check, err := ring.CheckValue(id)
		if err != nil {
			return fmt.Errorf("announce key %s: %w", id, err)
		}
		row := dbx.Params{"key_id": id, "sealed": check, "seals": id == ring.PrimaryKeyID()}
		if err := insert(tx, "announce key "+id, "service_keys", row); err != nil {
			return err
		}
	}
	return nil
}

// DeleteServiceKeys records that the service has ended.
func DeleteServiceKeys(app core.App) error {
	return exec(app, "delete the service's keys", `DELETE FROM service_keys`, nil)
}

// SealedTable is a collection with encrypted columns.
type SealedTable struct {
	Name    string
	Columns []*PHIField
}

// SealedTables returns the encrypted columns of every collection except the audit log: its old entries keep their keys.
func SealedTables(app core.App) (tables []SealedTable, err error) {
	all, cached := app.Store().Get(core.StoreKeyCachedCollections).([]*core.Collection) // reading them again would take 5% of the startup time
	if !cached {
		if all, err = app.FindAllCollections(); err != nil {
			return nil, fmt.Errorf("list collections: %w", err)
		}
	}
	for _, collection := range all {
		if collection.IsView() {
			continue
		}
		if t := (SealedTable{collection.Name, SealedFields(collection)}); len(t.Columns) > 0 && t.Name != AuditLog {
			tables = append(tables, t)
		}
	}
	return tables, nil
}

// SealedFields returns the encrypted fields of a collection.
func SealedFields(collection *core.Collection) (fields []*PHIField) {
	for _, field := range collection.Fields {
		if f, ok := field.(*PHIField); ok {
			fields = append(fields, f)
		}
	}
	return fields
}

// keyOf extracts the key id from a sealed column in SQL; "" if the value is not sealed.
func keyOf(column string) string {
	return fmt.Sprintf(`(CASE WHEN [[%[1]s]] GLOB 'v[12]:*:*' THEN substr([[%[1]s]], 4, instr(substr([[%[1]s]], 4), ':') - 1) ELSE '' END)`, column)
}

// KeyIDsIn returns the ids of the keys that seal values of a table: of all rows, or of the newest ones.
func KeyIDsIn(app core.App, t SealedTable, newest int) (ids []string, err error) {
	for _, f := range t.Columns {
		query := app.DB().Select(keyOf(f.Name) + " AS key").Distinct(true).From(t.Name).AndWhere(dbx.NewExp(keyOf(f.Name) + " != ''"))
		if newest > 0 {
			query = query.AndWhere(dbx.NewExp(fmt.Sprintf("rowid IN (SELECT rowid FROM {{%s}} ORDER BY rowid DESC LIMIT %d)", t.Name, newest)))
		}
		var found []string
		if err := query.Column(&found); err != nil {
			return nil, fmt.Errorf("find the keys of %s: %w", t.Name, err)
		}
		ids = append(ids, found...)
	}
	return ids, nil
}

// OpensAny reports whether a ring opens any of a table's first values under a key. One is enough; a damaged value proves nothing.
func OpensAny(app core.App, ring *phi.KeyRing, t SealedTable, keyID string, most int) (bool, error) {
	for _, f := range t.Columns {
		var rows []struct {
			ID    string `db:"id"`
			Value string `db:"value"`
		}
		err := app.DB().Select("id", f.Name+" AS value").From(t.Name).Where(dbx.NewExp(keyOf(f.Name)+" = {:key}", dbx.Params{"key": keyID})).
			Limit(int64(most)).All(&rows)
		if err != nil {
			return false, fmt.Errorf("read %s: %w", t.Name, err)
		}
		for _, row := range rows {
			if _, err := ring.Open(row.Value, f.Purpose, row.ID); err == nil {
				return true, nil
			}
		}
	}
	return false, nil
}

// ValuesByKey counts the values of a table that must be sealed again under the ring's first key, by key id; "" counts unsealed values.
func ValuesByKey(app core.App, ring *phi.KeyRing, t SealedTable, into map[string]int) error {
	for _, f := range t.Columns {
		var rows []struct {
			Key    string `db:"key"`
			Values int    `db:"n"`
		}
		err := app.DB().Select(keyOf(f.Name)+" AS key", "COUNT(*) AS n").From(t.Name).Where(NeedsReseal(ring, f)).GroupBy("key").All(&rows)
		if err != nil {
			return fmt.Errorf("count %s by key: %w", t.Name, err)
		}
		for _, row := range rows {
			into[row.Key] += row.Values
		}
	}
	return nil
}

// NeedsReseal selects rows with a column value that is not sealed as the ring seals now.
func NeedsReseal(ring *phi.KeyRing, f *PHIField) dbx.Expression {
	prefix := ring.SealedPrefix()
	return dbx.NewExp(fmt.Sprintf("([[%[1]s]] != '' AND substr([[%[1]s]], 1, {:length}) != {:prefix})", f.Name),
		dbx.Params{"length": len(prefix), "prefix": prefix})
}
