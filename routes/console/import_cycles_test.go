package console_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// named matches the modules that a module imports: statically, dynamically, or only for types.
var named = regexp.MustCompile(`(?:\bfrom|\bimport|\bimport\()\s*"([^"]+)"`)

// modules returns the imports of each console module, and the text of the page.
func modules(t *testing.T, named *regexp.Regexp) (names map[string][]string, page string) {
	t.Helper()
	console := os.DirFS("../../pb_public")
	names = map[string][]string{}
	err := fs.WalkDir(console, ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".js" || strings.HasPrefix(file, "vendor/") {
			return err
		}
		text, err := fs.ReadFile(console, file)
		names[file] = nil
		for _, found := range named.FindAllSubmatch(text, -1) {
			at := strings.TrimPrefix(string(found[1]), "/")
			if at == string(found[1]) {
				at = path.Join(path.Dir(file), at)
			}
			names[file] = append(names[file], at)
		}
		return err
	})
	text, failed := fs.ReadFile(console, "index.html")
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return names, string(text)
}

// The page preloads exactly the modules that its first module needs, so that the browser need not discover them one by
// one.
func TestPagePreloadsItsModules(t *testing.T) {
	names, page := modules(t, regexp.MustCompile(`(?:\bfrom|\bimport)\s*"([^"]+)"`))
	needed := map[string]bool{ // imports of the packages
		"vendor/preact.js": true, "vendor/preact-hooks.js": true, "vendor/preact-signals.js": true, "vendor/preact-signals-core.js": true, "vendor/htm.js": true,
	}
	var follow func(file string)
	follow = func(file string) {
		if path.Ext(file) == ".js" && !needed[file] {
			needed[file] = true
			for _, next := range names[file] {
				follow(next)
			}
		}
	}
	follow("app/main.js")
	for _, found := range regexp.MustCompile(`<link rel="modulepreload" href="/([^"]+)">`).FindAllStringSubmatch(page, -1) {
		if !needed[found[1]] {
			t.Errorf("the page names %s, which its first module does not need", found[1])
		}
		delete(needed, found[1])
	}
	for file := range needed {
		t.Errorf("the page does not name %s", file)
	}
}

// A module must be readable from its imports, so import cycles are forbidden.
func TestNoImportCycles(t *testing.T) {
	names, _ := modules(t, named)
	if len(names["app/main.js"]) == 0 || !slices.Contains(names["app/views.js"], "app/views/triage.js") ||
		!slices.Contains(names["app/views/entry.js"], "app/views/entry/steps.js") {
		t.Fatalf("%d modules were read, of which the first names %v", len(names), names["app/main.js"])
	}
	left := map[string]bool{} // modules that are part of no cycle
	var follow func(file string, way []string)
	follow = func(file string, way []string) {
		if i := slices.Index(way, file); i >= 0 {
			t.Errorf("a circle: %s", strings.Join(append(way[i:], file), " -> "))
			return
		}
		if left[file] {
			return
		}
		for _, next := range names[file] {
			follow(next, append(slices.Clip(way), file))
		}
		left[file] = true
	}
	for file := range names {
		follow(file, nil)
	}
}
