package payer

import (
	_ "embed" // the script below
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed readers.py
var script []byte

// A Reader is a program for X12 that was written elsewhere: the packages that it consists of, and the versions of Python that it runs on.
type Reader struct {
	name        string
	packages    []string
	since, till int // Python 3's minor version: from, up to
}

// The readers. What each is for stands in readers.py; how they were chosen, in docs/decisions/building.md, "Library choices".
var (
	Pyx12          = Reader{"pyx12", []string{"pyx12==4.0.0", "defusedxml==0.7.1"}, 11, 99}
	LinuxForHealth = Reader{"linuxforhealth", []string{
		"linuxforhealth-x12==0.57.0", "pydantic==1.10.27", "python-dotenv==1.2.4", "typing_extensions==4.16.0",
	}, 9, 13}
	Oxedi = Reader{"oxedi", []string{"oxedi==0.6.0"}, 11, 99}
)

// Found is what a reader says of a file. Which fields it fills is the reader's.
type Found struct {
	OK                                 bool
	Errors                             []string
	Answer                             string // pyx12: the 999 that it would send
	Claims, Lines, Adjustments, Others int
	Cents                              int64
}

// Read has a file read. The test is skipped where there is no Python that the reader runs on, or no pip; what is missing otherwise is installed,
// once, into the user's cache.
func (r Reader) Read(t testing.TB, file []byte) (found Found) {
	t.Helper()
	packages := r.installed(t)
	dir := t.TempDir()
	program, data := filepath.Join(dir, "readers.py"), filepath.Join(dir, "file.x12")
	for name, content := range map[string][]byte{program: script, data: file} {
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

// installed is the folder of the reader's packages.
func (r Reader) installed(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys, pip; print(sys.version_info[1])").Output()
	if err != nil {
		t.Skipf("no python3 with pip here: %s does not read this", r.name)
	}
	var minor int
	if _, err := fmt.Sscan(string(out), &minor); err != nil || minor < r.since || minor > r.till {
		t.Skipf("%s does not run on Python 3.%d", r.name, minor)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no cache folder here for %s: %v", r.name, err)
	}
	sum := fnv.New32a()
	_, _ = fmt.Fprint(sum, minor, r.packages)
	folder := filepath.Join(cache, "vigil-tests", fmt.Sprintf("%s-%08x", r.name, sum.Sum32()))
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o750); err != nil {
		t.Fatal(err)
	}
	// Beside it first: nobody finds it half installed, and of two tests at once one is a moment late.
	half, err := os.MkdirTemp(filepath.Dir(folder), r.name)
	if err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "python3", append([]string{
		"-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--target", half,
	}, r.packages...)...)
	if out, err := install.CombinedOutput(); err != nil {
		_ = os.RemoveAll(half)
		t.Fatalf("pip install %s: %v\n%s", r.name, err, out)
	}
	if err := os.Rename(half, folder); err != nil {
		if _, there := os.Stat(folder); there != nil {
			t.Fatal(err)
		}
		_ = os.RemoveAll(half)
	}
	return folder
}
