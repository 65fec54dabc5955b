// Package rotation knows how sealed data changes its key while the service works on it: every encrypted column of every
// collection is read in batches, sealed anew under the first key of the ring, and written back only where the old
// ciphertext still stands, so that a change made meanwhile wins. Where it got to is said by the ciphertexts themselves,
// which name their key: a rotation that was interrupted goes on where it stopped, and a second one finds nothing to do.
//
// The audit log is append only and is left alone; the report says which keys it still needs. The package refuses to know
// where keys come from, and what the columns mean.
package rotation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

const (
	// rowsPerBatch keeps each transaction short: other writers wait for it.
	rowsPerBatch = 200
	// mostPasses bounds the work against a service that keeps sealing under an older key.
	mostPasses = 5
)

// Report is what a rotation did.
type Report struct {
	KeyID      string // of the key that seals now
	Resealed   int    // values
	Unreadable int    // values that no key of the ring opens; they were left as they are
	Remaining  int    // values that somebody sealed under an older key meanwhile
	// AuditRows counts the rows of the audit log that still need another key, by key.
	AuditRows map[string]int
}

// Run seals everything under the first key of the ring. progress is told how many rows of how many are done. It stops
// between two batches when ctx ends; what is done stays done, and the report says how much that was.
// Source: docs/decisions.md, "Encryption at rest".
func Run(ctx context.Context, app core.App, ring *phi.KeyRing, by audit.Actor, now time.Time, progress func(done, total int)) (Report, error) {
	r := &rotation{app: app, ring: ring, progress: progress, report: Report{KeyID: ring.PrimaryKeyID()}}
	err := r.run(ctx)
	if r.report.Resealed > 0 {
		recorded := audit.Append(app, audit.Entry{
			Event: audit.SettingsUpdate, Actor: by, ResourceType: "EncryptionKey", ResourceID: r.report.KeyID,
			Changes: audit.Changes{"resealed": {New: r.report.Resealed}},
		}, now)
		if err == nil {
			err = recorded
		}
	}
	return r.report, err
}

type rotation struct {
	app         core.App
	ring        *phi.KeyRing
	progress    func(done, total int)
	report      Report
	done, total int
}

// table is a collection with its encrypted columns.
type table struct {
	name    string
	columns []*collections.PHIField
}

func (r *rotation) run(ctx context.Context) error {
	tables, err := encrypted(r.app)
	if err != nil {
		return err
	}
	if err := collections.ResealIndexKey(r.app, r.ring); err != nil {
		return err
	}
	for _, t := range tables {
		n, err := r.count(t)
		if err != nil {
			return err
		}
		r.total += n
	}
	for range mostPasses {
		resealed := r.report.Resealed
		r.report.Unreadable = 0
		for _, t := range tables {
			if err := r.pass(ctx, t); err != nil {
				return err
			}
		}
		if r.report.Resealed == resealed {
			break
		}
	}
	if err := r.countRemaining(tables); err != nil {
		return err
	}
	if r.total > 0 {
		r.progress(r.total, r.total)
	}
	r.report.AuditRows, err = auditRows(r.app, r.ring)
	return err
}

// encrypted finds the encrypted columns of every collection but the audit log.
func encrypted(app core.App) (tables []table, err error) {
	all, err := app.FindAllCollections(core.CollectionTypeBase, core.CollectionTypeAuth)
	if err != nil {
		return nil, fmt.Errorf("list collections: %w", err)
	}
	for _, collection := range all {
		t := table{name: collection.Name}
		for _, field := range collection.Fields {
			if f, ok := field.(*collections.PHIField); ok {
				t.columns = append(t.columns, f)
			}
		}
		if len(t.columns) > 0 && t.name != collections.AuditLog {
			tables = append(tables, t)
		}
	}
	return tables, nil
}

// stale is true for rows with a value that is not under the first key.
func (r *rotation) stale(t table) dbx.Expression {
	prefix := collections.SealedUnder(r.ring.PrimaryKeyID())
	var old []dbx.Expression
	for _, f := range t.columns {
		old = append(old, dbx.NewExp(fmt.Sprintf("([[%[1]s]] != '' AND substr([[%[1]s]], 1, {:length}) != {:prefix})", f.Name),
			dbx.Params{"length": len(prefix), "prefix": prefix}))
	}
	return dbx.Or(old...)
}

func (r *rotation) count(t table) (rows int, err error) {
	if err := r.app.DB().Select("COUNT(*)").From(t.name).Where(r.stale(t)).Row(&rows); err != nil {
		return 0, fmt.Errorf("count %s: %w", t.name, err)
	}
	return rows, nil
}

// pass goes once through a table, in the order of ids.
func (r *rotation) pass(ctx context.Context, t table) error {
	names := []string{"id"}
	for _, f := range t.columns {
		names = append(names, f.Name)
	}
	for after := ""; ; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("rotation stopped: %w", context.Cause(ctx))
		}
		var rows []dbx.NullStringMap
		err := r.app.DB().Select(names...).From(t.name).Where(r.stale(t)).AndWhere(dbx.NewExp("id > {:after}", dbx.Params{"after": after})).
			OrderBy("id").Limit(rowsPerBatch).All(&rows)
		if err != nil {
			return fmt.Errorf("read %s: %w", t.name, err)
		}
		if len(rows) == 0 {
			return nil
		}
		if err := r.reseal(t, rows); err != nil {
			return err
		}
		after = rows[len(rows)-1]["id"].String
		r.done += len(rows)
		r.progress(min(r.done, r.total), r.total)
	}
}

// fresh is a value under its new key.
type fresh struct{ column, id, old, sealed string }

// reseal seals a batch, then writes it in one short transaction.
func (r *rotation) reseal(t table, rows []dbx.NullStringMap) error {
	var values []fresh
	for _, row := range rows {
		for _, f := range t.columns {
			id, old := row["id"].String, row[f.Name].String
			if old == "" || strings.HasPrefix(old, collections.SealedUnder(r.ring.PrimaryKeyID())) {
				continue
			}
			plain, err := r.ring.Open(old, f.Purpose, id)
			if err != nil {
				r.report.Unreadable++
				continue
			}
			sealed, err := r.ring.Seal(plain, f.Purpose, id)
			if err != nil {
				return fmt.Errorf("seal %s: %w", t.name, err)
			}
			values = append(values, fresh{f.Name, id, old, sealed})
		}
	}
	resealed := 0
	err := r.app.RunInTransaction(func(tx core.App) error {
		resealed = 0
		for _, v := range values {
			result, err := tx.DB().Update(t.name, dbx.Params{v.column: v.sealed}, dbx.HashExp{"id": v.id, v.column: v.old}).Execute()
			if err != nil {
				return fmt.Errorf("store %s: %w", t.name, err)
			}
			n, err := result.RowsAffected()
			if err != nil {
				return fmt.Errorf("store %s: %w", t.name, err)
			}
			resealed += int(n) // 0 when somebody changed the value meanwhile
		}
		return nil
	})
	if err == nil {
		r.report.Resealed += resealed
	}
	return err
}

// countRemaining finds what can be opened but was not resealed.
func (r *rotation) countRemaining(tables []table) error {
	stale := 0
	for _, t := range tables {
		for _, f := range t.columns {
			n, err := r.count(table{t.name, []*collections.PHIField{f}})
			if err != nil {
				return err
			}
			stale += n
		}
	}
	r.report.Remaining = max(0, stale-r.report.Unreadable)
	return nil
}

// auditRows counts the rows of the audit log by the other keys they need.
func auditRows(app core.App, ring *phi.KeyRing) (map[string]int, error) {
	counts, err := collections.AuditRowsByKey(app)
	if err != nil {
		return nil, err
	}
	delete(counts, ring.PrimaryKeyID())
	return counts, nil
}

// Keys are the ids of the keys that the audit log still needs, sorted.
func (r Report) Keys() []string { return slices.Sorted(maps.Keys(r.AuditRows)) }
