package migrations_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/migrations"
)

// Each collection of the baseline has exactly the columns and indexes that its SQL file makes.
func TestCollectionsMatchTables(t *testing.T) {
	app := vigiltest.NewApp(t)
	list, err := app.FindAllCollections(core.CollectionTypeBase, core.CollectionTypeAuth)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 60 {
		t.Fatalf("found %d collections", len(list))
	}
	for _, collection := range list {
		var declared, made []string
		for _, field := range collection.Fields {
			declared = append(declared, field.GetName()+" "+strings.ToUpper(field.ColumnType(app)))
		}
		var rows []struct {
			Name    string  `db:"name"`
			Type    string  `db:"type"`
			NotNull bool    `db:"notnull"`
			Default *string `db:"dflt_value"`
			Key     bool    `db:"is_key"`
		}
		if err := app.DB().NewQuery("SELECT *, pk AS is_key FROM pragma_table_info('" + collection.Name + "')").All(&rows); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			text := row.Name + " " + row.Type
			if row.Key {
				text += " PRIMARY KEY"
			}
			if row.Default != nil {
				text += " DEFAULT " + *row.Default
				if row.Key {
					text = strings.Replace(text, *row.Default, "("+*row.Default+")", 1)
				}
			}
			if row.NotNull {
				text += " NOT NULL"
			}
			made = append(made, row.Name+strings.ToUpper(strings.TrimPrefix(text, row.Name)))
		}
		slices.Sort(declared)
		slices.Sort(made)
		if !slices.Equal(declared, made) {
			t.Errorf("%s: collection has\n%s\ntable has\n%s", collection.Name, strings.Join(declared, "\n"), strings.Join(made, "\n"))
		}
		for _, index := range collection.Indexes {
			name := strings.Trim(strings.Fields(index[strings.Index(index, "INDEX")+5:])[0], "`")
			var n int
			if err := app.DB().NewQuery("SELECT COUNT(*) FROM sqlite_schema WHERE type = 'index' AND name = '" + name + "'").Row(&n); err != nil || n != 1 {
				t.Errorf("%s: index %s exists %d times (%v)", collection.Name, name, n, err)
			}
		}
	}
}

// Every domain has its files, and every file belongs to a domain.
func TestEveryBaselineFileIsUsed(t *testing.T) {
	entries, err := os.ReadDir("baseline")
	if err != nil {
		t.Fatal(err)
	}
	var registered []string
	for _, m := range core.AppMigrations.Items() {
		_, domain, _ := strings.Cut(strings.TrimSuffix(m.File, ".go"), "_")
		registered = append(registered, domain)
	}
	for _, entry := range entries {
		domain, _, _ := strings.Cut(entry.Name(), ".")
		if domain != "icd10" && !slices.Contains(registered, domain) {
			t.Errorf("baseline/%s belongs to no registered domain", entry.Name())
		}
	}
}

func TestCheckHistory(t *testing.T) {
	for name, test := range map[string]struct {
		applied []string
		current bool
		err     error
	}{
		"new folder":       {[]string{"1640988000_init.go"}, false, nil},
		"baseline":         {[]string{"1640988000_init.go", "1767226001_operations.go"}, false, nil},
		"last replaced":    {[]string{"1767225601_sequences.go", "1767225993_no_journals.go"}, true, nil},
		"one step before":  {[]string{"1767225601_sequences.go", "1767225992_readings_by_kind.go"}, false, migrations.ErrTooOld},
		"first step alone": {[]string{"1767225601_sequences.go"}, false, migrations.ErrTooOld},
	} {
		if current, err := migrations.CheckHistory(test.applied); current != test.current || !errors.Is(err, test.err) {
			t.Errorf("%s: %t, %v", name, current, err)
		}
	}
}

// A folder with the replaced history keeps its tables and records the baseline; an older one is refused before anything changes.
func TestFolderOfReplacedHistory(t *testing.T) {
	app := vigiltest.NewApp(t)
	run := func(sql string) {
		t.Helper()
		if _, err := app.DB().NewQuery(sql).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (n int) {
		t.Helper()
		if err := app.DB().NewQuery("SELECT COUNT(*) FROM _migrations WHERE file GLOB '1767226*'").Row(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	domains := count()
	run("DELETE FROM _migrations WHERE file GLOB '1767226*'")
	run("INSERT INTO _migrations (file, applied) VALUES ('1767225601_sequences.go', 1), ('1767225992_readings_by_kind.go', 1)")
	if err := app.RunAppMigrations(); !errors.Is(err, migrations.ErrTooOld) && (err == nil || !strings.Contains(err.Error(), migrations.ErrTooOld.Error())) {
		t.Errorf("an older folder: %v", err)
	}
	if n := count(); n != 0 {
		t.Errorf("an older folder recorded %d domains", n)
	}
	run("INSERT INTO _migrations (file, applied) VALUES ('1767225993_no_journals.go', 1)")
	if err := app.RunAppMigrations(); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != domains {
		t.Errorf("recorded %d domains, want %d", n, domains)
	}
}

// A folder whose record of the baseline was deleted is refused with one clear sentence, and nothing is recorded.
func TestFolderWithoutBaselineRecord(t *testing.T) {
	app := vigiltest.NewApp(t)
	if _, err := app.DB().NewQuery("DELETE FROM _migrations WHERE file GLOB '1767226*'").Execute(); err != nil {
		t.Fatal(err)
	}
	err := app.RunAppMigrations()
	if err == nil || !strings.Contains(err.Error(), migrations.ErrTablesExist.Error()) || strings.Contains(err.Error(), "already exists") {
		t.Errorf("refused with %v", err)
	}
	var recorded int
	if err := app.DB().NewQuery("SELECT COUNT(*) FROM _migrations WHERE file GLOB '1767226*'").Row(&recorded); err != nil || recorded != 0 {
		t.Errorf("recorded %d domains (%v)", recorded, err)
	}
}
