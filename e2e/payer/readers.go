package payer

import (
	_ "embed" // the script below
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/pip"
)

//go:embed readers.py
var readersScript []byte

// A Reader is a third-party X12 program: its packages, and the Python versions that it runs on.
type Reader struct {
	name        string
	packages    []string
	since, till int // Python 3's minor version: from, up to
}

// The readers. readers.py describes what each checks; docs/decisions/building.md, "Library choices", how they were chosen.
var (
	Pyx12          = Reader{"pyx12", []string{"pyx12==4.0.0", "defusedxml==0.7.1"}, 11, 99}
	LinuxForHealth = Reader{"linuxforhealth", []string{
		"linuxforhealth-x12==0.57.0", "pydantic==1.10.27", "python-dotenv==1.2.4", "typing_extensions==4.16.0",
	}, 9, 13}
	Oxedi = Reader{"oxedi", []string{"oxedi==0.6.0"}, 11, 99}
)

// ReadResult is a reader's result for a file. Each reader fills only some of the fields.
type ReadResult struct {
	OK                                 bool
	Errors                             []string
	Answer                             string // pyx12: the 999 that it would send
	Claims, Lines, Adjustments, Others int
	Cents                              int64
}

// Read makes the reader read a file. It installs missing packages once, into the user's cache, and skips the test without a
// suitable Python or pip.
func (r Reader) Read(t testing.TB, file []byte) (found ReadResult) {
	t.Helper()
	packages := pip.Folder(t, r.name, r.since, r.till, r.packages...)
	dir := t.TempDir()
	program, data := filepath.Join(dir, "readers.py"), filepath.Join(dir, "file.x12")
	for name, content := range map[string][]byte{program: readersScript, data: file} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), "python3", program, r.name, data)
	run.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1")
	var problems strings.Builder
	run.Stderr = &problems
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", r.name, err, problems.String())
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	return found
}
