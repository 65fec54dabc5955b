package vigiltest

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// templateSources must include all own packages that the template imports, or a change of one would leave a stale template.
func TestTemplateSourcesAreComplete(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	met := []string{"internal/vigiltest"}
	for i := 0; i < len(met); i++ {
		for _, imported := range ownImports(t, filepath.Join(root, met[i])) {
			if !slices.Contains(met, imported) {
				met = append(met, imported)
			}
		}
	}
	met = append(met, "migrations/baseline") // embedded by the migrations
	slices.Sort(met)
	if diff := cmp.Diff(met, templateSources); diff != "" {
		t.Error(diff)
	}
}

func ownImports(t *testing.T, folder string) (imported []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if ours, ok := strings.CutPrefix(path, "github.com/vigilhealth/vigil/"); ok {
				imported = append(imported, ours)
			}
		}
	}
	return imported
}

// A changed, added or removed source changes the fingerprint; a test does not.
func TestTemplateFingerprint(t *testing.T) {
	module := func(change func(fstest.MapFS)) string {
		files := fstest.MapFS{"go.mod": {Data: []byte("m")}, "go.sum": {Data: []byte("s")}}
		for _, folder := range templateSources {
			files[path.Join(folder, "a.go")] = &fstest.MapFile{Data: []byte(folder)}
		}
		change(files)
		sum, err := fingerprint(files)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	same := module(func(fstest.MapFS) {})
	if got := module(func(files fstest.MapFS) { files["collections/a_test.go"] = &fstest.MapFile{} }); got != same {
		t.Error("a test file changed the fingerprint")
	}
	for name, change := range map[string]func(fstest.MapFS){
		"changed": func(files fstest.MapFS) { files["migrations/a.go"].Data = []byte("other") },
		"added":   func(files fstest.MapFS) { files["migrations/b.go"] = &fstest.MapFile{} },
		"removed": func(files fstest.MapFS) {
			files["collections/b.sql"] = &fstest.MapFile{}
			delete(files, "collections/a.go")
		},
		"data":         func(files fstest.MapFS) { files["migrations/baseline/a.go"].Data = nil },
		"dependencies": func(files fstest.MapFS) { files["go.sum"].Data = []byte("other") },
	} {
		if module(change) == same {
			t.Errorf("%s: the fingerprint did not change", name)
		}
	}
}

// A stored template is read back unchanged, and only a few are kept.
func TestTemplateIsCached(t *testing.T) {
	all := filepath.Join(t.TempDir(), "vigil-test-templates")
	made := databases{"data.db": []byte("data"), "auxiliary.db": []byte("logs")}
	for i := range 2 * maxCached {
		folder := filepath.Join(all, strconv.Itoa(i))
		if err := made.store(folder); err != nil {
			t.Fatal(err)
		}
		got, err := readDatabases(folder)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(made, got); diff != "" {
			t.Error(diff)
		}
	}
	if entries, err := os.ReadDir(all); err != nil || len(entries) != maxCached {
		t.Errorf("%d templates are kept (%v), want %d", len(entries), err, maxCached)
	}
	if _, err := readDatabases(filepath.Join(all, "never")); !os.IsNotExist(err) {
		t.Errorf("reading a missing template: %v", err)
	}
}
