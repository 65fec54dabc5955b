package console_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// named finds the modules that one names: to import from, to load later, or only for their types.
var named = regexp.MustCompile(`(?:\bfrom|\bimport|\bimport\()\s*"([^"]+)"`)

// A module is understood from those it names, and so none may name itself through others.
func TestNoCircles(t *testing.T) {
	console := os.DirFS("../../pb_public")
	names := map[string][]string{}
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
	if err != nil || len(names["app/main.js"]) == 0 || !slices.Contains(names["app/views.js"], "app/views/triage.js") ||
		!slices.Contains(names["app/views/entry.js"], "app/views/entry/steps.js") {
		t.Fatalf("%d modules were read, of which the first names %v (%v)", len(names), names["app/main.js"], err)
	}
	left := map[string]bool{} // modules that lead into no circle
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
