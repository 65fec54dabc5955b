package backup_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestRestoreRefusesFolderInUse(t *testing.T) {
	app := vigiltest.NewApp(t)
	store, _ := folder(t)
	keys := backup.Keys{Ring: ring(t, "first")}
	name, _ := create(t, app, store, keys, vigiltest.Clock)

	dir := filepath.Join(t.TempDir(), "data")
	var release []func() error
	for range 2 { // a service and a command
		one, err := backup.LockInUse(dir)
		if err != nil {
			t.Fatal(err)
		}
		release = append(release, one)
	}
	for _, letGo := range release {
		_, _, err := backup.Restore(t.Context(), store, keys, name, dir, true, vigiltest.Clock)
		if err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("restored into a folder in use: %v", err)
		}
		if err := letGo(); err != nil {
			t.Fatal(err)
		}
		if err := letGo(); err != nil {
			t.Errorf("let go twice: %v", err)
		}
	}
	if left := inFolder(t, dir); len(left) > 0 {
		t.Errorf("left behind %v", left)
	}
	if _, _, err := backup.Restore(t.Context(), store, keys, name, dir, false, vigiltest.Clock); err != nil {
		t.Error(err)
	}
	if _, err := backup.LockInUse(dir); err != nil {
		t.Errorf("the restore is over: %v", err)
	}
}

// The next backup removes the files of a killed one.
func TestNextBackupRemovesLeftovers(t *testing.T) {
	app := vigiltest.NewApp(t)
	store, dir := folder(t)
	keys := backup.Keys{Ring: ring(t, "first")}
	scratch := filepath.Join(app.DataDir(), ".backup")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, "vigil-20260114T013000Z.tar.gz.age.17.tmp")
	for _, file := range []string{filepath.Join(scratch, "data.db"), half} {
		if err := os.WriteFile(file, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name, _ := create(t, app, store, keys, vigiltest.Clock)
	if _, err := backup.Verify(t.Context(), store, keys, name, app.DataDir(), open); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{scratch, half} {
		if _, err := os.Stat(gone); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
}

// Litestream's replication state is moved aside with the database that it describes.
func TestRestoreMovesReplicationState(t *testing.T) {
	store, _ := folder(t)
	keys := backup.Keys{Ring: ring(t, "first")}
	name, _ := create(t, vigiltest.NewApp(t), store, keys, vigiltest.Clock)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".data.db-litestream"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := backup.Restore(t.Context(), store, keys, name, dir, false, vigiltest.Clock); err == nil {
		t.Error("restored beside what Litestream remembers")
	}
	_, aside, err := backup.Restore(t.Context(), store, keys, name, dir, true, vigiltest.Clock)
	if err != nil {
		t.Fatal(err)
	}
	if left := inFolder(t, dir); !slices.Equal(left, []string{filepath.Base(aside), "data.db"}) {
		t.Errorf("in the folder: %v", left)
	}
}
