//go:build sqlite_in_c && cgo

package sqlite

import (
	"path/filepath"
	"testing"
)

// The driver stores the sqlite3_stmt in the field that handleOf reads. Otherwise values would be bound one at a time, which no other test would detect.
func TestHandleIsFound(t *testing.T) {
	opened, err := connector{path: filepath.Join(t.TempDir(), "data.db")}.open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	statement, err := opened.PrepareContext(t.Context(), "CREATE TABLE numbers (n)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = statement.Close() }()
	if p, ok := statement.(prepared); !ok || p.handle == nil {
		t.Fatalf("a %T without a handle", statement)
	}
	if rows, done, err := statement.(prepared).runBound(nil); rows != 0 || !done || err != nil {
		t.Errorf("%d rows, done: %v (%v)", rows, done, err)
	}
}
