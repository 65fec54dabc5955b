package vigiltest

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const decisions = "docs/decisions/"

var (
	heading = regexp.MustCompile(`(?m)^#{1,4} (.+)$`)
	// A line break inside a comment, with the comment marker of the next line.
	brokenLine = regexp.MustCompile(`\s*\n[ \t]*(?://|#|\*|--)?[ \t]*`)
	// A page and the headings that are quoted after it.
	citation = regexp.MustCompile(`docs/decisions/([a-z_-]+\.md)((?:(?:,| and|, and) "[^"]+")*)`)
	quoted   = regexp.MustCompile(`"([^"]+)"`)
	code     = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	// Tests that a page names, and tests that the code defines.
	cited   = regexp.MustCompile("`((?:Test|Benchmark)[A-Z]\\w+)")
	written = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)[A-Z]\w+)\(`)
	// Paths that a page names: a package folder or a file.
	named = regexp.MustCompile("`((?:cmd|collections|deploy|docs|e2e|hooks|internal|jobs|migrations|pb_public|routes)/[A-Za-z0-9_./@-]+)`")
)

// headings returns the headings of a page.
func headings(page []byte) (list []string) {
	for _, found := range heading.FindAllSubmatch(page, -1) {
		list = append(list, strings.TrimSpace(string(found[1])))
	}
	return list
}

// Every decision that a comment cites exists on the page and under the heading that it quotes.
func TestCitedDecisionsExist(t *testing.T) {
	files := readTree(t)
	pages := map[string][]string{} // by file name
	for name, content := range files {
		if strings.HasPrefix(name, decisions) {
			pages[strings.TrimPrefix(name, decisions)] = headings(content)
		}
	}
	// holder returns the page that has a heading, for the error about a wrong page.
	holder := func(heading string) string {
		for page, list := range pages {
			if slices.Contains(list, heading) {
				return page
			}
		}
		return "none"
	}
	count := 0
	for name, content := range files {
		text := brokenLine.ReplaceAllString(string(content), " ")
		for _, found := range citation.FindAllStringSubmatch(text, -1) {
			page := found[1]
			if pages[page] == nil {
				t.Errorf("%s cites %s%s, which does not exist", name, decisions, page)
				continue
			}
			for _, words := range quoted.FindAllStringSubmatch(found[2], -1) {
				count++
				if !slices.Contains(pages[page], words[1]) {
					t.Errorf("%s cites %q of %s; the heading is on: %s", name, words[1], page, holder(words[1]))
				}
			}
		}
		for _, before := range []string{"docs/decisions" + ".md, ", "(decisions" + ".md"} {
			if strings.Contains(text, before) {
				t.Errorf("%s cites the decisions without naming a page", name)
			}
		}
	}
	if count < 200 {
		t.Errorf("only %d citations were found", count)
	}
}

// Every link of a page leads to an existing file and heading, and every path and test that a page names exists.
func TestDocumentReferencesExist(t *testing.T) {
	files := readTree(t)
	exists := func(name string) bool {
		_, err := os.Stat("../../" + name)
		return err == nil
	}
	tests := map[string]bool{}
	for name, content := range files {
		for _, found := range written.FindAllSubmatch(content, -1) {
			tests[string(found[1])] = path.Ext(name) == ".go"
		}
	}
	linked := map[string]bool{}
	for name, content := range files {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, found := range link.FindAllSubmatch(code.ReplaceAll(content, nil), -1) {
			target, anchor, _ := strings.Cut(string(found[1]), "#")
			if strings.Contains(target, ":") {
				continue // an external link
			}
			page := name
			if target != "" {
				page = path.Join(path.Dir(name), target)
			}
			linked[page] = true
			if !exists(page) {
				t.Errorf("%s links to %s, which does not exist", name, page)
			} else if anchor != "" && !slices.ContainsFunc(headings(files[page]), func(h string) bool { return anchorOf(h) == anchor }) {
				t.Errorf("%s links to #%s of %s, which has no such heading", name, anchor, page)
			}
		}
		for _, found := range named.FindAllSubmatch(content, -1) {
			if !exists(string(found[1])) {
				t.Errorf("%s names %s, which does not exist", name, found[1])
			}
		}
		for _, found := range cited.FindAllSubmatch(content, -1) {
			if !tests[string(found[1])] {
				t.Errorf("%s names the test %s, which does not exist", name, found[1])
			}
		}
	}
	for name := range files {
		if strings.HasPrefix(name, decisions) && !linked[name] {
			t.Errorf("no page links to %s", name)
		}
	}
}

// anchorOf returns a heading's anchor: lower case, hyphens for spaces, and only letters, digits and underscores otherwise.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
