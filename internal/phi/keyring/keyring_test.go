package keyring_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/phi/keyring"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func ring(t *testing.T, ids ...string) *phi.KeyRing {
	t.Helper()
	var keys []phi.Key
	for _, id := range ids {
		keys = append(keys, phi.Key{ID: id, Secret: [phi.KeySize]byte([]byte(strings.Repeat(id, phi.KeySize)[:phi.KeySize]))})
	}
	r, err := phi.NewKeyRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// noMigration migrates nothing.
func noMigration() error { return nil }

func registered(t *testing.T, app core.App) (ids []string) {
	t.Helper()
	keys, err := collections.RingKeys(app)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		ids = append(ids, key.ID)
	}
	return ids
}

// A key is not retired if a process starts to seal under it between the count and the retirement.
func TestRetirementDetectsNewSealingProcess(t *testing.T) {
	app := vigiltest.NewApp(t)
	if _, err := app.DB().NewQuery(`DELETE FROM sealed_keys`).Execute(); err != nil { // the index key is sealed under the key of all tests
		t.Fatal(err)
	}
	for _, ids := range [][]string{{"a"}, {"b", "a"}} {
		if err := keyring.AdmitService(app, ring(t, ids...), noMigration); err != nil {
			t.Fatal(err)
		}
	}
	fresh := ring(t, "b", "a")
	retirement, err := keyring.BeginRetirement(app, fresh)
	if err != nil {
		t.Fatal(err)
	}
	release, err := keyring.AdmitCommand(app, ring(t, "a", "b"), noMigration)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := retirement.Finish(app, map[string]int{}, true)
	if err != nil || kept["a"] == "" || !slices.Equal(registered(t, app), []string{"a", "b"}) {
		t.Errorf("kept %v, registered %v, %v", kept, registered(t, app), err)
	}
	again := func(alone bool) map[string]string {
		t.Helper()
		retirement, err := keyring.BeginRetirement(app, fresh)
		if err == nil {
			kept, err = retirement.Finish(app, map[string]int{}, alone)
		}
		if err != nil {
			t.Fatal(err)
		}
		return kept
	}
	if err := backup.TryLockSealing(app.DataDir(), func(alone bool) error { again(alone); return nil }); err != nil || kept["a"] == "" {
		t.Errorf("with a running command: kept %v, %v", kept, err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := backup.TryLockSealing(app.DataDir(), func(alone bool) error { again(alone); return nil }); err != nil || len(kept) > 0 {
		t.Errorf("without a running command: kept %v, %v", kept, err)
	}
	if ids := registered(t, app); !slices.Equal(ids, []string{"b"}) {
		t.Errorf("registered keys %v", ids)
	}
	if err := keyring.Check(app, ring(t, "a")); err == nil || !strings.HasSuffix(err.Error(), ": b") {
		t.Errorf("with the old ring: %v", err)
	}
}

// One damaged value does not make a key count as different; a key under which no value opens does.
func TestDamagedValuesDoNotInvalidateKey(t *testing.T) {
	app := vigiltest.NewApp(t)
	for range 2 {
		p, err := collections.NewPatient(app)
		if err != nil {
			t.Fatal(err)
		}
		p.Load(map[string]any{"first_name": "Ann", "last_name": "Lee", "date_of_birth": "1950-01-02", "gender": "other", "mrn": p.Id})
		if err := app.SaveNoValidate(p); err != nil {
			t.Fatal(err)
		}
	}
	own := vigiltest.Sealer().KeyRing
	if _, err := app.DB().NewQuery(`UPDATE patients SET last_name = 'v1:test:AAAAAAAAAAAAAAAA:AAAA', first_name = last_name
		WHERE id = (SELECT MIN(id) FROM patients)`).Execute(); err != nil {
		t.Fatal(err)
	}
	if err := keyring.Check(app, own); err != nil {
		t.Errorf("with one damaged value: %v", err)
	}
	if _, err := app.DB().Update(collections.Patients, dbx.Params{"last_name": "v1:lost:AAAAAAAAAAAAAAAA:AAAA"}, nil).Execute(); err != nil {
		t.Fatal(err)
	}
	if err := keyring.Check(app, own); err == nil || !strings.HasSuffix(err.Error(), ": lost") {
		t.Errorf("with a lost key: %v", err)
	}
	if err := keyring.Check(app, ring(t, "test")); err == nil || !strings.HasSuffix(err.Error(), ": lost, test") {
		t.Errorf("with a different key of the same id: %v", err)
	}
}

// A service without published keys is detected before any rows are read, even in a folder without a key register.
func TestSilentServiceIsDetectedBeforeReads(t *testing.T) {
	app := vigiltest.NewApp(t)
	release, err := backup.LockServe(app.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	for _, statement := range []string{"DELETE FROM ring_keys", "DELETE FROM service_keys", "DROP TABLE service_keys"} {
		if _, err := app.DB().NewQuery(statement).Execute(); err != nil {
			t.Fatal(err)
		}
		app.ConcurrentDB().(*dbx.DB).QueryLogFunc = func(_ context.Context, _ time.Duration, query string, _ *sql.Rows, _ error) {
			if strings.Contains(query, "patients") {
				reads++
			}
		}
		_, err := keyring.AdmitCommand(app, ring(t, "a"), func() error { t.Error("migrated"); return nil })
		if !errors.Is(err, keyring.ErrServiceSilent) || reads > 0 {
			t.Errorf("after %s: %v, %d reads of patients", statement, err, reads)
		}
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if _, err := keyring.AdmitCommand(app, ring(t, "a"), noMigration); err == nil || !strings.HasSuffix(err.Error(), ": test") || reads == 0 {
		t.Errorf("without the service: %v, %d reads", err, reads)
	}
}

// The check runs before the migrations: it accepts an empty folder, and a rejected ring changes no schema.
func TestCheckRunsBeforeMigrations(t *testing.T) {
	app := vigiltest.NewApp(t)
	migrated := 0
	migrate := func() error { migrated++; return nil }
	if err := keyring.AdmitService(app, ring(t, "a"), migrate); err == nil || migrated > 0 {
		t.Errorf("with another ring: %v, migrated %d times", err, migrated)
	}
	for _, table := range []string{"ring_keys", "sealed_keys"} {
		if err := keyring.Check(app, vigiltest.Sealer().KeyRing); err != nil {
			t.Error(err)
		}
		if _, err := app.DB().DropTable(table).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	if err := keyring.Check(app, ring(t, "a")); err != nil {
		t.Errorf("in an empty folder: %v", err)
	}
}
