package vigiltest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
)

// databases are the database files of an app, by name.
type databases map[string][]byte

// template holds the database files of a migrated app in memory. All test binaries use the same files, and under the race
// detector the migrations take longer than the tests of most packages, so the first binary stores them in the user's cache.
var template = sync.OnceValues(func() (databases, error) {
	collections.UseSealer(Sealer())
	cached := cachedTemplate()
	if cached != "" {
		if files, err := readDatabases(cached); err == nil {
			return files, nil
		}
	}
	files, err := buildTemplate()
	if err == nil && cached != "" {
		_ = files.store(cached) // on failure the next binary builds it again
	}
	return files, err
})

// buildTemplate builds the databases by running the migrations.
func buildTemplate() (databases, error) {
	empty, err := os.MkdirTemp("", "vigiltest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(empty) //nolint:errcheck // an empty folder may remain
	app, err := tests.NewTestAppWithConfig(core.BaseAppConfig{DataDir: empty, DBConnect: connect})
	if err != nil {
		return nil, err
	}
	defer app.Cleanup()
	if err := errors.Join(setLowestHashCost(app), collections.SetPlannerStatistics(app), collections.InstallChangeTriggers(app), startAuditTrail(app)); err != nil {
		return nil, err
	}
	if err := app.ClearBootstrap(); err != nil { // closing checkpoints the write-ahead logs
		return nil, err
	}
	return readDatabases(app.DataDir())
}

func readDatabases(dir string) (databases, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err == nil && len(paths) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	files := databases{}
	for _, path := range paths {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (d databases) write(dir string) error {
	for name, content := range d {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// store writes the databases to a folder atomically, and removes the oldest templates.
func (d databases) store(folder string) error {
	all := filepath.Dir(folder)
	if err := os.MkdirAll(all, 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(all, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // removed with the oldest templates
	if err := d.write(fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, folder); err != nil {
		return err
	}
	return dropOldest(all, filepath.Base(folder))
}

// maxCached is the number of templates kept, enough to switch between branches.
const maxCached = 8

// dropOldest keeps the newest templates, the one just made included.
func dropOldest(all, made string) error {
	entries, err := os.ReadDir(all)
	if err != nil {
		return err
	}
	age := map[string]time.Time{}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && entry.Name() != made {
			age[entry.Name()] = info.ModTime()
		}
	}
	newest := slices.SortedFunc(maps.Keys(age), func(a, b string) int { return age[b].Compare(age[a]) })
	for _, name := range newest[min(len(newest), maxCached-1):] {
		if err := os.RemoveAll(filepath.Join(all, name)); err != nil {
			return err
		}
	}
	return nil
}

// templateSources are the packages that determine the template, relative to the module root.
var templateSources = []string{
	"collections",
	"internal/async",
	"internal/audit",
	"internal/auth",
	"internal/authz",
	"internal/egress",
	"internal/fault",
	"internal/notifications",
	"internal/phi",
	"internal/sqlite",
	"internal/validate",
	"internal/vigiltest", "internal/vitals",
	"migrations",
	"migrations/baseline",
}

// cachedTemplate returns the folder of the template for the current sources, or "" without a cache or sources.
func cachedTemplate() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	root, err := moduleRoot()
	if err != nil {
		return ""
	}
	sum, err := fingerprint(os.DirFS(root))
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "vigil-test-templates", sum)
}

// fingerprint changes whenever a source of the template changes.
func fingerprint(module fs.FS) (string, error) {
	paths := []string{"go.mod", "go.sum"}
	for _, folder := range templateSources {
		entries, err := fs.ReadDir(module, folder)
		if err != nil {
			return "", err
		}
		for _, entry := range entries {
			if !entry.IsDir() && !strings.HasSuffix(entry.Name(), "_test.go") {
				paths = append(paths, path.Join(folder, entry.Name()))
			}
		}
	}
	sum := sha256.New()
	for _, name := range paths {
		content, err := fs.ReadFile(module, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content) //nolint:errcheck // a hash takes everything
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
