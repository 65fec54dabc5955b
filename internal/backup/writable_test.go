package backup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vigilhealth/vigil/internal/backup"
)

// Writable leaves no file behind.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		dir: true, filepath.Join(dir, "not", "made", "yet"): true, file: false, filepath.Join(file, "below"): false, "/proc/1/nothing/here": false,
	} {
		if err := backup.CheckWritable(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
