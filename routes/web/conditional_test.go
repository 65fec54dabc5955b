package web

import (
	"strings"
	"testing"
)

func TestParseTags(t *testing.T) {
	for _, test := range []struct {
		lines        []string
		strong, weak bool // names "a"
	}{
		{[]string{`"a"`}, true, true},
		{[]string{`W/"a"`}, false, true},
		{[]string{`*`}, true, true},
		{[]string{` * `}, true, true},
		{[]string{`"b" , "a"`}, true, true},
		{[]string{`"b"`, `"a"`}, true, true},
		{[]string{`, "b",, "a",`}, true, true},
		{[]string{`"b,a"`}, false, false},
		{[]string{`"b,", "a"`}, true, true},
		{[]string{`w/"a"`}, false, false},
		{[]string{`W/ "a"`}, false, false},
		{[]string{`*, "a"`}, false, false},
		{[]string{`a`}, false, false},
		{[]string{`"a`}, false, false},
		{[]string{`"a" "a"`}, false, false},
		{[]string{`"a", b`}, false, false},
		{[]string{`"A"`}, false, false},
		{[]string{`""`}, false, false},
		{[]string{""}, false, false},
	} {
		tags := parseTags(test.lines)
		if tags.matchesStrongly(`"a"`) != test.strong || tags.matchesWeakly(`"a"`) != test.weak {
			t.Errorf("%q: %+v", test.lines, tags)
		}
	}
}

// FuzzParseTags returns only well-formed tags of the input, and all of them.
func FuzzParseTags(f *testing.F) {
	for _, seed := range []string{`"a"`, `W/"a", "b"`, `*`, `"`, `"a" W/"b"`, `,,`, "\x00\"", `"a\"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		tags := parseTags([]string{line})
		for _, tag := range append(tags.strong, tags.weak...) {
			if len(tag) < 2 || tag[0] != '"' || tag[len(tag)-1] != '"' || !strings.Contains(line, tag) || strings.Count(tag, `"`) != 2 {
				t.Errorf("%q names %q", line, tag)
			}
			if again := parseTags([]string{tag}); !again.matchesStrongly(tag) {
				t.Errorf("%q is not read again", tag)
			}
		}
		if tags.any != (strings.Trim(line, " \t") == "*") {
			t.Errorf("%q names any: %t", line, tags.any)
		}
	})
}
