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

// template holds the database files of an app after its migrations, kept in memory. They are the same for every test binary, and with the
// race detector the migrations take longer than the tests of most packages: the first binary leaves them in the user's cache for the rest.
var template = sync.OnceValues(func() (databases, error) {
	collections.UseSealer(Sealer())
	cached := cachedTemplate()
	if cached != "" {
		if files, err := readDatabases(cached); err == nil {
			return files, nil
		}
	}
	files, err := migrated()
	if err == nil && cached != "" {
		_ = files.store(cached) // else the next one makes it again
	}
	return files, err
})

// migrated makes the databases anew.
func migrated() (databases, error) {
	empty, err := os.MkdirTemp("", "vigiltest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(empty) //nolint:errcheck // a left-over empty folder harms nobody
	app, err := tests.NewTestAppWithConfig(core.BaseAppConfig{DataDir: empty, DBConnect: connect})
	if err != nil {
		return nil, err
	}
	defer app.Cleanup()
	if err := errors.Join(hashCheaply(app), collections.SetPlannerStatistics(app), collections.InstallChangeTriggers(app), beginTrail(app)); err != nil {
		return nil, err
	}
	if err := app.ClearBootstrap(); err != nil { // closes the databases, which folds their journals in
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

// keep leaves the databases in a folder, all of them or none, and drops the oldest.
func (d databases) store(folder string) error {
	all := filepath.Dir(folder)
	if err := os.MkdirAll(all, 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(all, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // it is dropped with the oldest
	if err := d.write(fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, folder); err != nil {
		return err
	}
	return dropOldest(all, filepath.Base(folder))
}

// mostCached are how many templates are kept: as many as somebody goes back and forth between.
const mostCached = 8

// dropOldest keeps the one just made and the newest others.
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
	for _, name := range newest[min(len(newest), mostCached-1):] {
		if err := os.RemoveAll(filepath.Join(all, name)); err != nil {
			return err
		}
	}
	return nil
}

// madeOf is what the template is made of, and what that imports of ours, relative to the top of the module.
var madeOf = []string{
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
	"internal/vigiltest",
	"migrations",
	"migrations/baseline",
}

// cachedTemplate is the folder for a template made of what there is now; "" where there is no cache, or no source.
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

// fingerprint is another one whenever any of what the template is made of is.
func fingerprint(module fs.FS) (string, error) {
	paths := []string{"go.mod", "go.sum"}
	for _, folder := range madeOf {
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
