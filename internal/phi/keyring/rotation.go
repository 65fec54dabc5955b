// Package rotation knows how sealed data changes its key while the service works on it: every encrypted column of every
// collection is read in batches, sealed anew under the first key of the ring, and written back only where the old
// ciphertext still stands, so that a change made meanwhile wins. Where it got to is said by the ciphertexts themselves,
// which name their key: a rotation that was interrupted goes on where it stopped, and a second one finds nothing to do.
//
// Last of all the old keys are retired: until then every start asks for them, so that a rotation may be killed at any moment.
//
// The audit log is append only and is left alone; the report says which keys it still needs. The package refuses to know
// where keys come from, and what the columns mean.
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
	// rowsPerBatch keeps each transaction short: other writers wait for it.
	rowsPerBatch = 200
	// mostPasses bounds the work against a service that keeps sealing under an older key.
	mostPasses = 5
	// mostNamed bounds the list of records that cannot be opened.
	mostNamed = 20
)

// Report is what a rotation did.
type Report struct {
	KeyID      string // of the key that seals now
	Resealed   int    // values
	Unreadable int    // values that no key of the ring opens; they were left as they are
	Remaining  int    // values that somebody sealed under an older key meanwhile
	// Named are the first of the unreadable values, as collection, id and column.
	Named []string
	// Kept says of each older key that could not be retired, why.
	Unretired map[string]string
	// AuditRows counts the rows of the audit log that still need another key, by key.
	AuditRows map[string]int
}

// Run seals everything under the first key of the ring, in today's form, and retires the others. progress is told how many rows
// of how many are done; letGo is called before keys are retired, for which this process must not count as one that may still seal under them. Run
// stops between two batches when ctx ends; what is done stays done, and the report says how much that was.
// Source: docs/decisions/security.md, "Encryption at rest".
func Run(ctx context.Context, app core.App, ring *phi.KeyRing, by audit.Actor, now time.Time, progress func(done, total int), letGo func() error) (Report, error) {
	r := &rotation{app: app, ring: ring, progress: progress, letGo: letGo, report: Report{KeyID: ring.PrimaryKeyID()}}
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
	letGo       func() error
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
	for range mostPasses {
		resealed := r.report.Resealed
		r.report.Unreadable, r.report.Named = 0, nil
		for _, t := range tables {
			if err := r.pass(ctx, t); err != nil {
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

// stale is true for rows with a value that is not as the first key seals now.
func (r *rotation) stale(t collections.SealedTable) dbx.Expression {
	var old []dbx.Expression
	for _, f := range t.Columns {
		old = append(old, collections.NeedsReseal(r.ring, f))
	}
	return dbx.Or(old...)
}

// pass goes once through a table, in the order of ids.
func (r *rotation) pass(ctx context.Context, t collections.SealedTable) error {
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
func (r *rotation) reseal(t collections.SealedTable, rows []dbx.NullStringMap) error {
	var values []fresh
	for _, row := range rows {
		for _, f := range t.Columns {
			id, old := row["id"].String, row[f.Name].String
			if old == "" || strings.HasPrefix(old, r.ring.SealedPrefix()) {
				continue
			}
			plain, err := r.ring.Open(old, f.Purpose, id)
			if err != nil {
				if r.report.Unreadable++; r.report.Unreadable <= mostNamed {
					r.report.Named = append(r.report.Named, t.Name+" "+id+" "+f.Name)
				}
				continue
			}
			sealed, err := r.ring.Seal(plain, f.Purpose, id)
			if err != nil {
				return fmt.Errorf("seal %s: %w", t.Name, err)
			}
			values = append(values, fresh{f.Name, id, old, sealed})
		}
	}
	resealed := 0
	err := untold(r.app, func(tx core.App) error {
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
			resealed += int(n) // 0 when somebody changed the value meanwhile
		}
		return nil
	})
	if err == nil {
		r.report.Resealed += resealed
	}
	return err
}

// untold is a transaction that changes nothing for those who follow the changes: the values are what they were.
func untold(app core.App, write func(tx core.App) error) error {
	return app.RunInTransaction(func(tx core.App) error {
		return collections.WithoutChanges(tx, func() error { return write(tx) })
	})
}

// retire finds what could be opened but was not resealed, and takes the keys under which nothing lies any more off the register.
func (r *rotation) retire(tables []collections.SealedTable) error {
	if err := r.letGo(); err != nil {
		return err
	}
	return backup.Alone(r.app.DataDir(), func(alone bool) error {
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

// Keys are the ids of the keys that the audit log still needs, sorted.
func (r Report) Keys() []string { return slices.Sorted(maps.Keys(r.AuditRows)) }
