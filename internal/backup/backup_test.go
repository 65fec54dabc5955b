package backup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/sqlite"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func ring(t *testing.T, ids ...string) *phi.KeyRing {
	t.Helper()
	var keys []phi.Key
	for _, id := range ids {
		keys = append(keys, phi.Key{ID: id, Secret: [phi.KeySize]byte([]byte((id + strings.Repeat("-", phi.KeySize))[:phi.KeySize]))})
	}
	made, err := phi.NewKeyRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func folder(t *testing.T) (*backup.Store, string) {
	t.Helper()
	dir := t.TempDir()
	at, err := backup.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	store := backup.NewStore(at)
	t.Cleanup(func() { _ = store.Close() })
	return store, dir
}

func note(t *testing.T, app core.App, n int) {
	t.Helper()
	for range n {
		err := app.RunInTransaction(func(tx core.App) error {
			return audit.Append(tx, audit.Entry{Event: audit.ObservationCreate, Actor: audit.System()}, vigiltest.Clock)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func open(dir string) (backup.Opened, error) {
	app, err := tests.NewTestAppWithConfig(core.BaseAppConfig{DataDir: dir, DBConnect: sqlite.Connect})
	if err != nil {
		return backup.Opened{}, err
	}
	return backup.Opened{App: app, Close: func() error { app.Cleanup(); return nil }}, nil
}

func create(t *testing.T, app core.App, store *backup.Store, keys backup.Keys, now time.Time) (string, backup.Manifest) {
	t.Helper()
	name, manifest, err := backup.Create(t.Context(), app, store, keys, "test", now)
	if err != nil {
		t.Fatal(err)
	}
	return name, manifest
}

func TestBackupRestores(t *testing.T) {
	app := vigiltest.NewApp(t)
	store, _ := folder(t)
	keys := backup.Keys{Ring: ring(t, "first")}
	note(t, app, 3)
	name, manifest := create(t, app, store, keys, vigiltest.Clock)
	note(t, app, 2) // not in the backup
	if manifest.Counts.AuditEntries != 3 || name != "vigil-20260115T134500Z.tar.gz.age" {
		t.Errorf("%s: %+v", name, manifest)
	}
	later := backup.Keys{Ring: ring(t, "second", "first")} // after a key rotation
	if got, err := backup.Verify(t.Context(), store, later, name, t.TempDir(), open); err != nil || got != manifest {
		t.Errorf("verified %+v: %v", got, err)
	}

	dir := filepath.Join(t.TempDir(), "new")
	if _, aside, err := backup.Restore(t.Context(), store, later, name, dir, false, vigiltest.Clock); err != nil || aside != "" {
		t.Fatal(aside, err)
	}
	if _, _, err := backup.Restore(t.Context(), store, later, name, dir, false, vigiltest.Clock); err == nil {
		t.Error("a second restore took the place of the database")
	}
	_, aside, err := backup.Restore(t.Context(), store, later, name, dir, true, vigiltest.Clock)
	if _, stat := os.Stat(filepath.Join(aside, "data.db")); err != nil || stat != nil {
		t.Errorf("moved aside to %q: %v, %v", aside, err, stat)
	}
	opened, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	_, head, err := collections.AuditHead(opened.App)
	if err != nil || head != manifest.AuditHead {
		t.Errorf("head %s, in the manifest %s: %v", head, manifest.AuditHead, err)
	}
}

func TestBackupOpensForFurtherRecipient(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	store, dir := folder(t)
	keys := backup.Keys{Ring: ring(t, "first"), Recipients: []string{identity.Recipient().String()}}
	name, _ := create(t, vigiltest.NewApp(t), store, keys, vigiltest.Clock)
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := age.Decrypt(f, identity); err != nil {
		t.Errorf("the key in the safe does not open it: %v", err)
	}
}

// inFolder lists a data folder without its lock files.
func inFolder(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".lock" {
			names = append(names, entry.Name())
		}
	}
	return names
}

func TestVerifyRejectsDamagedBackup(t *testing.T) {
	app := vigiltest.NewApp(t)
	store, dir := folder(t)
	keys := backup.Keys{Ring: ring(t, "first")}
	name, _ := create(t, app, store, keys, vigiltest.Clock)
	whole, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(whole), "SQLite format") {
		t.Error("the backup is in clear")
	}
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 1
	for what, content := range map[string][]byte{"cut": whole[:len(whole)-100], "changed": flipped, "empty": nil} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		into := filepath.Join(t.TempDir(), "restored")
		if _, _, err := backup.Restore(t.Context(), store, keys, name, into, false, vigiltest.Clock); err == nil {
			t.Errorf("%s: restored", what)
		}
		if left := inFolder(t, into); len(left) > 0 {
			t.Errorf("%s: left behind %v", what, left)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, name), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = backup.Verify(t.Context(), store, backup.Keys{Ring: ring(t, "other")}, name, t.TempDir(), open)
	if err == nil || !strings.Contains(err.Error(), "VIGIL_ENCRYPTION_KEYS") {
		t.Errorf("with another key: %v", err)
	}
}

func TestKeepRemovesOldBackups(t *testing.T) {
	app := vigiltest.NewApp(t)
	store, dir := folder(t)
	keys := backup.Keys{Ring: ring(t, "first")}
	if _, err := store.Find(t.Context(), ""); err == nil {
		t.Error("found a backup where there is none")
	}
	for day := range 4 {
		create(t, app, store, keys, vigiltest.Clock.AddDate(0, 0, day))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := backup.Create(ended, app, store, keys, "test", vigiltest.Clock.AddDate(0, 1, 0)); err == nil {
		t.Error("taken although it was called off")
	}
	if err := os.WriteFile(filepath.Join(dir, "vigil-notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	day := func(n int) string {
		return vigiltest.Clock.AddDate(0, 0, n).Format("vigil-20060102T150405Z") + ".tar.gz.age"
	}
	if removed, err := store.Prune(t.Context(), 2, []string{day(7)}); removed != 0 || err != nil { // no kept backup was verified
		t.Errorf("removed %d: %v", removed, err)
	}
	if removed, err := store.Prune(t.Context(), 2, []string{day(0), day(7)}); removed != 1 || err != nil {
		t.Errorf("removed %d: %v", removed, err)
	}
	if _, err := store.Find(t.Context(), day(0)); err != nil {
		t.Errorf("the newest verified backup was removed: %v", err)
	}
	removed, err := store.Prune(t.Context(), 2, []string{day(3), day(0)})
	if err != nil || removed != 1 {
		t.Errorf("removed %d: %v", removed, err)
	}
	kept, err := store.List(t.Context())
	if err != nil || len(kept) != 2 || !kept[0].CreatedAt.Equal(vigiltest.Clock.AddDate(0, 0, 3)) {
		t.Errorf("kept %v: %v", kept, err)
	}
	newest, err := store.Find(t.Context(), "latest")
	if err != nil || newest != kept[0] {
		t.Errorf("newest %v: %v", newest, err)
	}
}

// A damaged database is not backed up, and the files in the folder are private.
func TestDamagedDatabaseIsNotBackedUp(t *testing.T) {
	app := vigiltest.NewApp(t)
	store, dir := folder(t)
	keys := backup.Keys{Ring: ring(t, "first")}
	old := filepath.Join(dir, "vigil-20250115T134500Z.tar.gz.age")
	if err := os.WriteFile(old, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	create(t, app, store, keys, vigiltest.Clock)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 2 {
		t.Fatal(entries, err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", entry.Name(), info.Mode(), err)
		}
	}
	if _, err := app.NonconcurrentDB().NewQuery("PRAGMA wal_checkpoint(TRUNCATE)").Execute(); err != nil {
		t.Fatal(err)
	}
	var root, size int64
	if err := app.DB().NewQuery("SELECT rootpage, page_size FROM sqlite_master, pragma_page_size WHERE name = 'used_challenges'").Row(&root, &size); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(app.DataDir(), "data.db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte(strings.Repeat("\x77", 100)), (root-1)*size); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := backup.Create(t.Context(), app, store, keys, "test", vigiltest.Clock.AddDate(0, 0, 1)); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("taken of a damaged database: %v", err)
	}
	if kept, err := store.List(t.Context()); err != nil || len(kept) != 2 {
		t.Errorf("kept %v, %v", kept, err)
	}
}

// Two backups in the same second get different names, so that neither overwrites the other.
func TestBackupsInSameSecond(t *testing.T) {
	app := vigiltest.NewApp(t)
	store, _ := folder(t)
	keys := backup.Keys{Ring: ring(t, "first")}
	note(t, app, 1)
	first, _ := create(t, app, store, keys, vigiltest.Clock)
	note(t, app, 1)
	second, _ := create(t, app, store, keys, vigiltest.Clock)
	third, _ := create(t, app, store, keys, vigiltest.Clock)
	for name, entries := range map[string]int64{first: 1, second: 2, third: 2} {
		if m, err := backup.Verify(t.Context(), store, keys, name, t.TempDir(), open); err != nil || m.Counts.AuditEntries != entries {
			t.Errorf("%s: %+v, %v; want %d entries", name, m.Counts, err, entries)
		}
	}
	if kept, err := store.List(t.Context()); err != nil || len(kept) != 3 || kept[0].Name != third {
		t.Errorf("kept %v: %v", kept, err)
	}
}
