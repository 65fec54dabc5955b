package migrations

import (
	"embed"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/types"
)

// A domain is two files: <domain>.sql makes tables, indexes, triggers and first rows; <domain>.json has the collections as PocketBase stores them,
// without members that are empty, for its dashboard and API.
//
//go:embed baseline
var baselineFiles embed.FS

// domains are in the order in which they are made; the number keeps their file names in order after the migrations that they replace.
var domains = []string{
	"operations", "accounts", "audit", "patients", "devices", "readings", "alerts", "triage", "emr", "billing", "notifications",
}

func init() {
	for i, domain := range domains {
		register(fmt.Sprintf("1767226%03d_%s.go", i+1, domain), func(app core.App) error { return createDomain(app, domain) })
	}
}

// createDomain makes the tables and collections of a domain, unless the folder has them already.
func createDomain(app core.App, domain string) error {
	var applied []string
	if err := app.DB().Select("file").From(core.DefaultMigrationsTable).Column(&applied); err != nil {
		return fmt.Errorf("read applied migrations: %w", err)
	}
	if isCurrent, err := CheckHistory(applied); isCurrent || err != nil {
		return err
	}
	statements, err := baselineStatements(domain)
	if err != nil {
		return err
	}
	if domain == "billing" {
		statements = append(statements, billingTotalTriggers()...)
	}
	if err := requireNewTables(app, statements); err != nil {
		return err
	}
	if err := execute(app, statements...); err != nil {
		return fmt.Errorf("create %s: %w", domain, err)
	}
	if err := storeCollections(app, domain); err != nil {
		return fmt.Errorf("store collections of %s: %w", domain, err)
	}
	if domain == "billing" {
		return storeDiagnosisCodes(app)
	}
	return nil
}

// requireNewTables returns ErrTablesExist if the folder has a table that one of the statements creates: SQLite's own error would not name the cause.
// PocketBase creates users and _superusers before the baseline, which replaces them.
func requireNewTables(app core.App, statements []string) error {
	for _, sql := range statements {
		name, creates := strings.CutPrefix(sql, "CREATE TABLE `")
		if name, _, _ = strings.Cut(name, "`"); creates && name != "users" && name != core.CollectionNameSuperusers && app.HasTable(name) {
			return fmt.Errorf("%w: it has the table %s", ErrTablesExist, name)
		}
	}
	return nil
}

// oneLine undoes the line breaks between columns, so that SQLite stores the text that PocketBase would write.
var oneLine = strings.NewReplacer("(\n  ", "(", ",\n  ", ", ", "\n)", ")")

// baselineStatements returns the statements of a domain's SQL file, which an empty line separates.
func baselineStatements(domain string) ([]string, error) {
	text, err := baselineFiles.ReadFile("baseline/" + domain + ".sql")
	if err != nil {
		return nil, err
	}
	statements := strings.Split(strings.TrimSuffix(strings.TrimSpace(string(text)), ";"), ";\n\n")
	for i, sql := range statements {
		if strings.HasPrefix(sql, "CREATE TABLE `") {
			statements[i] = oneLine.Replace(sql)
		}
	}
	return statements, nil
}

// storeCollections stores the collections of a domain's JSON file. Their tables exist already, so the hooks that would make them do not run.
// PocketBase's own users and _superusers keep their token secrets, which are not in the file.
func storeCollections(app core.App, domain string) error {
	text, err := baselineFiles.ReadFile("baseline/" + domain + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var definitions []json.RawMessage
	if err := json.Unmarshal(text, &definitions); err != nil {
		return err
	}
	for _, definition := range definitions {
		var named struct{ Name string }
		if err := json.Unmarshal(definition, &named); err != nil {
			return err
		}
		collection, err := app.FindCollectionByNameOrId(named.Name)
		if err != nil {
			collection = &core.Collection{}
		}
		collection.Fields = nil
		if err := json.Unmarshal(definition, collection); err != nil {
			return fmt.Errorf("%s: %w", named.Name, err)
		}
		collection.Updated = types.NowDateTime()
		if collection.Created.IsZero() {
			collection.Created = collection.Updated
		}
		if err := app.UnsafeWithoutHooks().SaveNoValidate(collection); err != nil {
			return fmt.Errorf("%s: %w", named.Name, err)
		}
	}
	return app.ReloadCachedCollections()
}

// storeDiagnosisCodes stores the ICD-10-CM codes that remote monitoring needs most; `vigil icd10 import` loads the whole code set.
func storeDiagnosisCodes(app core.App) error {
	file, err := baselineFiles.Open("baseline/icd10.csv")
	if err != nil {
		return err
	}
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return fmt.Errorf("read the subset of ICD-10-CM: %w", err)
	}
	for _, row := range rows {
		_, err := app.DB().Insert("icd10_codes", dbx.Params{"code": row[0], "description": row[1], "category": row[2]}).Execute()
		if err != nil {
			return fmt.Errorf("store %s: %w", row[0], err)
		}
	}
	return nil
}
