package sqlite

import (
	"errors"
	"fmt"
	"os"

	"github.com/pocketbase/dbx"
)

// SortBeside has SQLite put what [SortOnDisk] keeps out of memory into a folder, whose disk has room for it: a container's /tmp is memory. The files
// have no names. SQLite as it is translated to Go takes /var/tmp or /tmp all the same. Call it before the first database is opened.
func SortBeside(dir string) {
	const where = "SQLITE_TMPDIR"
	if os.Getenv(where) == "" {
		_ = os.Setenv(where, dir) // otherwise it is as elsewhere
	}
}

// SortOnDisk keeps out of memory what the connection on which is written sorts during work, in no transaction: for a new index it would have all keys
// of the table there, 1.6 GB for ten million readings.
func SortOnDisk(writer dbx.Builder, work func() error) error {
	keep := func(where string) error {
		if _, err := writer.NewQuery("PRAGMA temp_store = " + where).Execute(); err != nil {
			return fmt.Errorf("where SQLite sorts: %w", err)
		}
		return nil
	}
	if err := keep("FILE"); err != nil {
		return err
	}
	return errors.Join(work(), keep("MEMORY"))
}
