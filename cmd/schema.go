package cmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// knownSchema fails when a newer program has worked on the folder's database: this one would write what that one does not expect, and read what it
// does not know. It changes nothing, and comes before anything else is opened. Source: docs/decisions/operating.md, "A newer folder".
func knownSchema(dir string) error {
	file := filepath.Join(dir, "data.db")
	if !exists(file) {
		return nil
	}
	db := sqlite.File(file, "busy_timeout(10000)", "query_only(ON)")
	applied, err := collections.AppliedMigrations(db)
	err = errors.Join(err, db.Close())
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, list := range []core.MigrationsList{core.SystemMigrations, core.AppMigrations} {
		for _, one := range list.Items() {
			known[one.File] = true
		}
	}
	unknown := slices.DeleteFunc(applied, func(name string) bool { return known[name] })
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("the database in %s was last opened by a newer version: this program does not know its migration %s. Start that version, or restore a backup of this one",
		dir, strings.Join(unknown, ", "))
}
