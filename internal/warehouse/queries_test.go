package warehouse_test

import (
	_ "embed" // the script below
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/e2e/pip"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/warehouse"
)

//go:embed testdata/run_queries.py
var script []byte

// runQueries runs a file of DuckDB queries against a bucket and returns the result of each SELECT.
func runQueries(t *testing.T, bucket *vigiltest.Bucket, queries string) (answers []string) {
	t.Helper()
	packages := pip.Folder(t, "duckdb", 10, 99, "duckdb==2.0.0")
	dir := t.TempDir()
	for key, content := range bucket.Objects() {
		path := filepath.Join(dir, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "run_queries.py")
	if err := os.WriteFile(program, script, 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "python3", program, filepath.Join(dir, "warehouse"), queries)
	run.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1")
	var problems strings.Builder
	run.Stderr = &problems
	out, err := run.Output()
	if err != nil {
		t.Fatalf("duckdb: %v\n%s", err, problems.String())
	}
	var found []json.RawMessage
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	for _, one := range found {
		answers = append(answers, string(one))
	}
	return answers
}

// The shipped queries work across two practices, from the exported files alone.
func TestQueriesAcrossPractices(t *testing.T) {
	bucket := vigiltest.NewBucket(t, "practices")
	at := time.Date(2026, 1, 12, 15, 0, 0, 0, time.UTC)
	for name, systolic := range map[string]float64{"elm-street": 120, "oak-lane": 150} {
		c := newCell(t, bucket, name, warehouse.Parquet)
		person := c.patient(at)
		c.patient(at) // a patient without readings
		for day := range 3 {
			c.reading(person, at.AddDate(0, 0, day-2), systolic, 75)
		}
		if name == "oak-lane" {
			c.row(collections.Alerts, at, dbx.Params{
				"patient": person, "type": "critical_high", "level": "critical", "status": "acknowledged", "acknowledged": true, "acknowledged_at": collections.FormatInstant(at.Add(12 * time.Minute)),
			})
			c.row(collections.Alerts, at, dbx.Params{"patient": person, "type": "critical_high", "level": "critical", "status": "active"})
		}
		c.row(collections.Transmissions, at, dbx.Params{"patient": person, "status": "failed", "error_code": "emr_rejected"})
		c.run()
	}
	want := []string{
		`[["elm-street",2,1],["oak-lane",2,1]]`,
		`[["elm-street",1,100.0],["oak-lane",1,0.0]]`,
		`[["oak-lane",2,1,12.0]]`,
		`[["elm-street","emr_rejected",1],["oak-lane","emr_rejected",1]]`,
	}
	got := runQueries(t, bucket, "../../deploy/queries/across-practices.sql")
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("answers:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
