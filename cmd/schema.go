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
	"github.com/vigilhealth/vigil/migrations"
)

// checkSchema fails if a newer version has migrated the database, which this version cannot read or write safely, or if the folder is from a build
// before the baseline migration. It changes nothing and runs before anything else is opened. Source: docs/decisions/operating.md, "A newer folder".
func checkSchema(dir string) error {
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
	if _, err := migrations.CheckHistory(applied); err != nil {
		return err
	}
	registered := map[string]bool{}
	for _, list := range []core.MigrationsList{core.SystemMigrations, core.AppMigrations} {
		for _, one := range list.Items() {
			registered[one.File] = true
		}
	}
	unknown := slices.DeleteFunc(applied, func(name string) bool { return registered[name] || migrations.IsReplaced(name) })
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("the database in %s was last opened by a newer version: this program does not have its migration %s. Start that version, or restore a backup of this version",
		dir, strings.Join(unknown, ", "))
}
