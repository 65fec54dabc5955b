package keyring

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
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/phi"
)

const (
	// rowsPerBatch keeps each transaction short, because other writers wait for it.
	rowsPerBatch = 200
	// maxPasses bounds the work if the service keeps sealing under an older key.
	maxPasses = 5
	// maxNamed bounds the list of unreadable values.
	maxNamed = 20
)

// Report is the result of a rotation.
type Report struct {
	KeyID      string // id of the key that seals
	Resealed   int    // values
	Unreadable int    // values that no key of the ring opens; they are unchanged
	Remaining  int    // values that another process sealed under an older key during the rotation
	// UnreadableValues lists the first unreadable values as collection, id and column.
	UnreadableValues []string
	// Unretired holds the reason for each older key that could not be retired.
	Unretired map[string]string
	// AuditRows counts the rows of the audit trail that need an older key, by key.
	AuditRows map[string]int
}

// Run seals all values under the first key of the ring in the current format, and retires the other keys. It calls progress with the rows done and in
// total. It calls release before it retires keys, so that this process no longer counts as one that may seal under them. When ctx ends, Run stops
// between two batches; completed batches are committed and reported.
// Source: docs/decisions/security.md, "Encryption at rest".
func Run(ctx context.Context, app core.App, ring *phi.KeyRing, by audit.Actor, now time.Time, progress func(done, total int), release func() error) (Report, error) {
	r := &rotation{app: app, ring: ring, progress: progress, release: release, report: Report{KeyID: ring.PrimaryKeyID()}}
	err := r.run(ctx)
	if r.report.Resealed > 0 {
		recorded := audit.Append(app, audit.Entry{
			Event: audit.SettingsUpdate, Actor: by, ResourceType: audit.ResourceEncryptionKey, ResourceID: r.report.KeyID,
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
	release     func() error
	report      Report
	done, total int
}

func (r *rotation) run(ctx context.Context) error {
	if _, err := collections.LoadIndexKey(r.app, r.ring); err != nil {
		return err
	}
	tables, err := collections.SealedTables(r.app)
	if err != nil {
		return err
	}
	for _, t := range tables {
		var rows int
		if err := r.app.DB().Select("COUNT(*)").From(t.Name).Where(r.stale(t)).Row(&rows); err != nil {
			return fmt.Errorf("count %s: %w", t.Name, err)
		}
		r.total += rows
	}
	for range maxPasses {
		resealed := r.report.Resealed
		r.report.Unreadable, r.report.UnreadableValues = 0, nil
		for _, t := range tables {
			if err := r.resealTable(ctx, t); err != nil {
				return err
			}
		}
		if r.report.Resealed == resealed {
			break
		}
	}
	if err := r.retire(tables); err != nil {
		return err
	}
	if r.total > 0 {
		r.progress(r.total, r.total)
	}
	r.report.AuditRows, err = collections.AuditRowsByKey(r.app)
	delete(r.report.AuditRows, r.ring.PrimaryKeyID())
	return err
}

// stale matches rows with a value that needs to be sealed again.
func (r *rotation) stale(t collections.SealedTable) dbx.Expression {
	var old []dbx.Expression
	for _, f := range t.Columns {
		old = append(old, collections.NeedsReseal(r.ring, f))
	}
	return dbx.Or(old...)
}

// resealTable reseals the stale rows of a table once, in the order of ids.
func (r *rotation) resealTable(ctx context.Context, t collections.SealedTable) error {
	names := []string{"id"}
	for _, f := range t.Columns {
		names = append(names, f.Name)
	}
	for after := ""; ; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("rotation stopped: %w", context.Cause(ctx))
		}
		var rows []dbx.NullStringMap
		err := r.app.DB().Select(names...).From(t.Name).Where(r.stale(t)).AndWhere(dbx.NewExp("id > {:after}", dbx.Params{"after": after})).
			OrderBy("id").Limit(rowsPerBatch).All(&rows)
		if err != nil {
			return fmt.Errorf("read %s: %w", t.Name, err)
		}
		if len(rows) == 0 {
			return nil
		}
		if err := r.resealBatch(t, rows); err != nil {
			return err
		}
		after = rows[len(rows)-1]["id"].String
		r.done += len(rows)
		r.progress(min(r.done, r.total), r.total)
	}
}

// resealedValue is a value sealed under the new key.
type resealedValue struct{ column, id, old, sealed string }

// resealBatch seals the values of a batch, then writes them in one short transaction.
func (r *rotation) resealBatch(t collections.SealedTable, rows []dbx.NullStringMap) error {
	var values []resealedValue
	for _, row := range rows {
		for _, f := range t.Columns {
			id, old := row["id"].String, row[f.Name].String
			if old == "" || strings.HasPrefix(old, r.ring.SealedPrefix()) {
				continue
			}
			plain, err := r.ring.Open(old, f.Purpose, id)
			if err != nil {
				if r.report.Unreadable++; r.report.Unreadable <= maxNamed {
					r.report.UnreadableValues = append(r.report.UnreadableValues, t.Name+" "+id+" "+f.Name)
				}
				continue
			}
			sealed, err := r.ring.Seal(plain, f.Purpose, id)
			if err != nil {
				return fmt.Errorf("seal %s: %w", t.Name, err)
			}
			values = append(values, resealedValue{f.Name, id, old, sealed})
		}
	}
	resealed := 0
	err := withoutChangeFeed(r.app, func(tx core.App) error {
		resealed = 0
		for _, v := range values {
			result, err := tx.DB().Update(t.Name, dbx.Params{v.column: v.sealed}, dbx.HashExp{"id": v.id, v.column: v.old}).Execute()
			if err != nil {
				return fmt.Errorf("store %s: %w", t.Name, err)
			}
			n, err := result.RowsAffected()
			if err != nil {
				return fmt.Errorf("store %s: %w", t.Name, err)
			}
			resealed += int(n) // 0 if the value was changed concurrently
		}
		return nil
	})
	if err == nil {
		r.report.Resealed += resealed
	}
	return err
}

// withoutChangeFeed runs a transaction that adds nothing to the change feed, since the plaintexts do not change.
func withoutChangeFeed(app core.App, write func(tx core.App) error) error {
	return app.RunInTransaction(func(tx core.App) error {
		return collections.WithoutChanges(tx, func() error { return write(tx) })
	})
}

// retire counts the values that were not resealed and unregisters the keys that no value uses.
func (r *rotation) retire(tables []collections.SealedTable) error {
	if err := r.release(); err != nil {
		return err
	}
	return backup.TryLockSealing(r.app.DataDir(), func(alone bool) error {
		retirement, err := BeginRetirement(r.app, r.ring)
		if err != nil {
			return err
		}
		values, stale := map[string]int{}, 0
		for _, t := range tables {
			if err := collections.ValuesByKey(r.app, r.ring, t, values); err != nil {
				return err
			}
		}
		for _, n := range values {
			stale += n
		}
		r.report.Remaining = max(0, stale-r.report.Unreadable)
		r.report.Unretired, err = retirement.Finish(r.app, values, alone)
		return err
	})
}

// AuditKeys returns the ids of the keys that the audit trail still needs, sorted.
func (r Report) AuditKeys() []string { return slices.Sorted(maps.Keys(r.AuditRows)) }
