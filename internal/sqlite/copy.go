package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

const (
	// pagesAtOnce is how much is copied between two rests: 2 MB, or 4 where a database has pages of 4 kB; some milliseconds.
	pagesAtOnce = 1000
	// stepsToSync is how often the copy is written out to the disk. Left to the system, it would pile up in memory until everybody who writes
	// has to wait for it, readings among them.
	stepsToSync = 8
)

// Copy writes the database as it is at this moment into a file that does not exist yet, page by page through SQLite's own
// backup, beside whoever reads and writes. It calls rest after every few pages. The end of the copy may not have reached the disk.
func Copy(ctx context.Context, db *sql.DB, target string, rest func(context.Context) error) (err error) {
	reader, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	// One read from the first page to the last: whatever others write meanwhile is not in it, and does not make the copy begin again.
	if _, err := reader.ExecContext(ctx, "BEGIN DEFERRED"); err != nil {
		return err
	}
	defer func() {
		_, ended := reader.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		err = errors.Join(err, ended)
	}()
	var tables int
	if err := reader.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master").Scan(&tables); err != nil {
		return err
	}
	return reader.Raw(func(opened any) error { return copyPages(ctx, opened, target, rest) })
}

func copyPages(ctx context.Context, opened any, target string, rest func(context.Context) error) (err error) {
	reader, ok := opened.(*conn)
	if !ok {
		return fmt.Errorf("%T was not opened here", opened)
	}
	copying, err := copyTo(reader.connection, target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copying.Finish()) }()
	for step := 1; ; step++ {
		more, err := copying.Step(pagesAtOnce)
		if err != nil || !more {
			return err
		}
		if step%stepsToSync == 0 {
			if err := writeOut(target); err != nil {
				return err
			}
		}
		if err := rest(ctx); err != nil {
			return err
		}
	}
}

func writeOut(path string) error {
	file, err := os.Open(path) //nolint:gosec // the copy under way
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
