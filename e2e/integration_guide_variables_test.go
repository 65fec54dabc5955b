package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	inPython   = regexp.MustCompile(`os\.environ\["([A-Z_]+)"\]`)
	inScript   = regexp.MustCompile(`const \{ ([^}]*) \} = process\.env`)
	inShell    = regexp.MustCompile(`\$\{?([A-Z][A-Z_]+)`)
	setInShell = regexp.MustCompile(`(?:^|[\s;(])(?:for )?([A-Z][A-Z_]+)(?:=| in )`)
	aName      = regexp.MustCompile(`[A-Z][A-Z_]+`)
)

// Every environment variable that the page's programs use is listed in its table.
func TestIntegratingListsVariables(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/integrating.md")
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(page), "\n## ")
	needed := map[string]string{}
	for _, s := range integratingSections(t) {
		for _, found := range inPython.FindAllStringSubmatch(s.blocks["python"], -1) {
			needed[found[1]] = s.title
		}
		for _, found := range inScript.FindAllStringSubmatch(s.blocks["ts"], -1) {
			for _, name := range aName.FindAllString(found[1], -1) {
				needed[name] = s.title
			}
		}
	}
	set := map[string]bool{}
	for _, s := range integratingSections(t) {
		for _, found := range setInShell.FindAllStringSubmatch(s.blocks["sh"], -1) {
			set[found[1]] = true
		}
	}
	for _, s := range integratingSections(t) {
		for _, found := range inShell.FindAllStringSubmatch(s.blocks["sh"], -1) {
			if !set[found[1]] {
				needed[found[1]] = s.title
			}
		}
	}
	if len(needed) < 8 {
		t.Fatalf("found only %v", needed)
	}
	for name, title := range needed {
		if !strings.Contains(before, "`"+name+"`") {
			t.Errorf("%q uses %s, which the table does not list", title, name)
		}
	}
}
