// Package pip installs Python packages for tests, once and only into the user's cache.
package pip

import (
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Folder returns a folder with packages of fixed versions, for PYTHONPATH. It skips the test without pip or a Python from
// 3.since to 3.till.
func Folder(t testing.TB, name string, since, till int, packages ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys, pip; print(sys.version_info[1])").Output()
	if err != nil {
		t.Skipf("python3 with pip is not installed: %s is not tested", name)
	}
	var minor int
	if _, err := fmt.Sscan(string(out), &minor); err != nil || minor < since || minor > till {
		t.Skipf("%s does not run on Python 3.%d", name, minor)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no cache folder for %s: %v", name, err)
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
	// Installed into a temporary folder first, so that no test sees a partial installation; concurrent tests may both
	// install.
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
