// Package migrations defines the database schema: a baseline with one file pair per domain, then one file per change. A released file is never
// edited. The package imports no other package of Vigil, because a migration must not change when a constant is renamed.
//
// Conventions. Times are text in UTC with six digits ("2026-01-15T13:45:00.000000Z"), so that a device's microseconds survive and text order is
// time order. Dates are text, YYYY-MM-DD. Money is whole cents. A number that may be absent has the type "optional_number" and is NULL when
// absent. Protected health information has the type "phi" and is ciphertext on disk. Where the contract has a UUID, the record id is that UUID;
// where it has an integer, the record id is that integer, zero-padded to fifteen digits, so that ids sort.
package migrations

import (
	"errors"
	"fmt"

	"github.com/pocketbase/pocketbase/core"
	m "github.com/pocketbase/pocketbase/migrations"
)

// The migrations that the baseline replaces. A folder that has the last of them has the baseline's schema.
const (
	firstReplaced = "1767225601_sequences.go"
	lastReplaced  = "1767225993_no_journals.go"
)

// ErrTooOld refuses a data folder that a build before commit 43bc52ef wrote.
var ErrTooOld = errors.New("this data folder has the schema of an earlier build: start a build of commit 43bc52ef on it once, then start this version")

// ErrTablesExist refuses a data folder whose record of the baseline was deleted. Whether its tables are complete is unknown.
var ErrTablesExist = errors.New("this data folder has tables of the schema, but no record in _migrations that they were created: restore a backup")

// register adds a migration under its file name. A migration has no reverse: an operator restores a backup instead.
func register(file string, up func(app core.App) error) {
	m.Register(up, func(core.App) error { return errors.New("restore a backup to go back") }, file)
}

// IsReplaced reports whether a migration file belongs to the history that the baseline replaces.
func IsReplaced(file string) bool { return firstReplaced <= file && file <= lastReplaced }

// CheckHistory returns ErrTooOld when the applied migration files end before the baseline's schema. isCurrent reports a folder that already has
// that schema, made by the replaced migrations.
func CheckHistory(applied []string) (isCurrent bool, err error) {
	replaced := false
	for _, file := range applied {
		replaced = replaced || IsReplaced(file)
		isCurrent = isCurrent || file == lastReplaced
	}
	if replaced && !isCurrent {
		return false, ErrTooOld
	}
	return isCurrent, nil
}

// execute runs SQL statements in order.
func execute(app core.App, statements ...string) error {
	for _, sql := range statements {
		if _, err := app.DB().NewQuery(sql).Execute(); err != nil {
			return fmt.Errorf("%.60s: %w", sql, err)
		}
	}
	return nil
}
