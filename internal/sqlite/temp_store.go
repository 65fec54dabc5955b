package sqlite

import (
	"errors"
	"fmt"
	"os"

	"github.com/pocketbase/dbx"
)

// SetTempDir makes SQLite write its temporary files, such as those of [SortOnDisk], to a folder on a disk with enough space: a container's /tmp can be
// memory. The files are unlinked at once. SQLite translated to Go still uses /var/tmp or /tmp. Call SetTempDir before the first database is opened.
func SetTempDir(dir string) {
	const variable = "SQLITE_TMPDIR"
	if os.Getenv(variable) == "" {
		_ = os.Setenv(variable, dir) // on failure SQLite uses its default
	}
}

// SortOnDisk runs work with temporary files on disk for the writing connection, outside of any transaction. A new index would otherwise sort all keys of
// the table in memory, 1.6 GB for ten million readings.
func SortOnDisk(writer dbx.Builder, work func() error) error {
	keep := func(where string) error {
		if _, err := writer.NewQuery("PRAGMA temp_store = " + where).Execute(); err != nil {
			return fmt.Errorf("set temp_store: %w", err)
		}
		return nil
	}
	if err := keep("FILE"); err != nil {
		return err
	}
	return errors.Join(work(), keep("MEMORY"))
}
