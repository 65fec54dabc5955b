package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pocketbase/dbx"
)

// ErrDamaged reports that the file is not a sound database.
var ErrDamaged = errors.New("the database is damaged")

// QuickCheck checks every page of a database, but not whether its indexes match their tables. It returns [ErrDamaged], or the error of a check that
// did not finish.
func QuickCheck(ctx context.Context, db dbx.Builder) error { return checkPages(ctx, db, "quick_check") }

func checkPages(ctx context.Context, db dbx.Builder, pragma string) error {
	var problems []string
	err := db.NewQuery("PRAGMA " + pragma + "(5)").WithContext(ctx).Column(&problems)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !showsDamage(err):
		return err
	case err != nil || len(problems) != 1 || problems[0] != "ok": // SQLite's messages may quote stored values
		return ErrDamaged
	}
	return nil
}

// showsDamage reports whether a statement failed because of the content of the file: SQLITE_CORRUPT or SQLITE_NOTADB.
func showsDamage(err error) bool {
	code := errorCode(err)
	return code == 11 || code == 26
}

// damageErrors counts the failed statements that show damage, by the path of an opened database.
var damageErrors sync.Map // of *atomic.Int64

func damageCounter(path string) *atomic.Int64 {
	counter, _ := damageErrors.LoadOrStore(path, &atomic.Int64{})
	return counter.(*atomic.Int64)
}

// countDamage counts an error that shows damage, and returns it.
func countDamage(counter *atomic.Int64, err error) error {
	if err != nil && counter != nil && showsDamage(err) {
		counter.Add(1)
	}
	return err
}

func (c *conn) note(err error) error { return countDamage(c.damage, err) }

const (
	// checkInterval is the interval between two checks of all pages, and suspicionDelay the longest time from a failed statement to a check.
	checkInterval  = time.Hour
	suspicionDelay = time.Minute
	// checkBudget bounds a check: it keeps the write-ahead log from shrinking, and reads the whole file. The nightly backup checks larger databases.
	checkBudget = 5 * time.Minute
	// suspicionBudget bounds the thorough check after a sign of damage, which also compares indexes with their tables.
	suspicionBudget = 30 * time.Minute
)

// Inspector looks for damage of a database file that this process has open: it checks every page at the start and hourly, on a connection of its own that
// blocks no writer, and watches for statements of all connections that fail because of damage.
type Inspector struct {
	path     string
	failures *atomic.Int64
	cleared  atomic.Int64 // failures before the last sound check
	found    atomic.Bool  // by a check
}

// NewInspector returns an inspector of the database at a path.
func NewInspector(path string) *Inspector {
	return &Inspector{path: path, failures: damageCounter(path)}
}

// Damaged reports whether a check or a statement found damage since the last check without a finding.
func (i *Inspector) Damaged() bool { return i.found.Load() || i.suspected() }

// Suspect reports damage that another check found, such as that of a backup's copy.
func (i *Inspector) Suspect() { i.failures.Add(1) }

func (i *Inspector) suspected() bool { return i.failures.Load() > i.cleared.Load() }

// Run checks until ctx is done, which interrupts a check.
func (i *Inspector) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(suspicionDelay)
	defer tick.Stop()
	for waited := checkInterval; ; waited += suspicionDelay {
		if waited >= checkInterval || i.suspected() && !i.found.Load() {
			i.Check(ctx, log)
			waited = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Check checks every page once. After a sign of damage it compares indexes with their tables too, and only a check without a finding ends the state.
// A check that does not finish changes nothing.
func (i *Inspector) Check(ctx context.Context, log *slog.Logger) {
	pragma, budget, failures := "quick_check", checkBudget, i.failures.Load()
	known := i.found.Load()
	damaged := known || i.suspected()
	if damaged {
		pragma, budget = "integrity_check", suspicionBudget
	}
	file := slog.String("file", i.path)
	if damaged && !known {
		log.Error("a statement failed because the database is damaged; the whole file is checked now", file)
	}
	switch err := i.inspect(ctx, pragma, budget); {
	case ctx.Err() != nil:
	case errors.Is(err, ErrDamaged):
		i.found.Store(true)
		i.cleared.Store(failures)
		if !known {
			log.Error("the database is damaged: see docs/runbooks.md, VigilDatabaseDamaged", file)
		}
	case err != nil:
		log.Warn("the database was not checked for damage; the next check is in an hour", file, slog.Any("error", err))
	default:
		i.cleared.Store(failures)
		i.found.Store(false)
		if damaged {
			log.Info("a check of the whole database found no damage", file)
		}
	}
}

func (i *Inspector) inspect(ctx context.Context, pragma string, budget time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	db := File(i.path, "busy_timeout(10000)", "query_only(ON)")
	err := checkPages(bounded, db, pragma)
	if bounded.Err() != nil {
		err = fmt.Errorf("it took more than %s", budget)
	}
	return errors.Join(err, db.Close())
}
