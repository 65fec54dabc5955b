package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

const (
	// pagesPerStep is the number of pages copied between two rests: 2 MB, or 4 MB with pages of 4 kB, which takes a few milliseconds.
	pagesPerStep = 1000
	// stepsToSync is the number of steps between syncs of the copy. Without them, the system would collect dirty pages in memory until all writers,
	// including those of readings, have to wait.
	stepsToSync = 8
)

// Copy writes a snapshot of the database to a new file with SQLite's backup API, page by page, concurrently with readers and
// writers. It calls rest after every step. The end of the copy may not be synced to disk.
func Copy(ctx context.Context, db *sql.DB, target string, rest func(context.Context) error) (err error) {
	reader, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	// One read transaction from the first page to the last: concurrent writes are not in the copy and do not restart it.
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
		return fmt.Errorf("a %T is not a connection of this package", opened)
	}
	runningCopy, err := copyTo(reader.connection, target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runningCopy.Finish()) }()
	for step := 1; ; step++ {
		more, err := runningCopy.Step(pagesPerStep)
		if err != nil || !more {
			return err
		}
		if step%stepsToSync == 0 {
			if err := syncFile(target); err != nil {
				return err
			}
		}
		if err := rest(ctx); err != nil {
			return err
		}
	}
}

func syncFile(path string) error {
	file, err := os.Open(path) //nolint:gosec // the path of the running copy
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
