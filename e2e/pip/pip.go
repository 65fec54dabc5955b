// Package pip knows how tests come by programs that are written in Python: installed once, into the user's cache, and nowhere else.
package pip

import (
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Folder is the folder of some packages, whose versions are fixed, for PYTHONPATH. The test is skipped where there is no Python of a version, from
// 3.since up to 3.till, or no pip.
func Folder(t testing.TB, name string, since, till int, packages ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys, pip; print(sys.version_info[1])").Output()
	if err != nil {
		t.Skipf("no python3 with pip here: %s does not run", name)
	}
	var minor int
	if _, err := fmt.Sscan(string(out), &minor); err != nil || minor < since || minor > till {
		t.Skipf("%s does not run on Python 3.%d", name, minor)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no cache folder here for %s: %v", name, err)
	}
	sum := fnv.New32a()
	_, _ = fmt.Fprint(sum, minor, packages)
	folder := filepath.Join(cache, "vigil-tests", fmt.Sprintf("%s-%08x", name, sum.Sum32()))
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o750); err != nil {
		t.Fatal(err)
	}
	// Beside it first: nobody finds it half installed, and of two tests at once one is a moment late.
	half, err := os.MkdirTemp(filepath.Dir(folder), name)
	if err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "python3", append([]string{
		"-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--target", half,
	}, packages...)...)
	if out, err := install.CombinedOutput(); err != nil {
		_ = os.RemoveAll(half)
		t.Fatalf("pip install %s: %v\n%s", name, err, out)
	}
	if err := os.Rename(half, folder); err != nil {
		if _, there := os.Stat(folder); there != nil {
			t.Fatal(err)
		}
		_ = os.RemoveAll(half)
	}
	return folder
}
