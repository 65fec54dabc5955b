package fhirserver

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func trimmed(v float64) string { return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'g', -1, 64) }

// Unescaped commas separate alternatives of any content.
func TestAlternatives(t *testing.T) {
	escape := strings.NewReplacer(`\`, `\\`, ",", `\,`)
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune(`a,\$| é`))), 1, 5).Draw(t, "list")
		escaped := make([]string, len(list))
		for i, one := range list {
			escaped[i] = escape.Replace(one)
		}
		if got := alternatives(strings.Join(escaped, ",")); !slices.Equal(got, list) {
			t.Fatalf("%q is parsed as %q", list, got)
		}
	})
}

func TestTokenMatch(t *testing.T) {
	const system = "urn:x"
	for text, want := range map[string]bool{
		"a": true, "urn:x|a": true, "urn:x|": true, "|a": false, "urn:y|a": false, "b": false, "urn:x|b": false, "": false, "urn:y|": false, "|": false,
	} {
		if got := parseToken(text).is(system, "a"); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestResourceIDs(t *testing.T) {
	for text, want := range map[string]bool{
		"a": true, "A-1.b": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false, "": false, "a b": false, "a/b": false, "ä": false, "a_b": false,
	} {
		if validID(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	for text, want := range map[string]string{"1": "000000000000001", "999999999999999": "999999999999999", "1000000000000000": "", "01": "", "-1": "", "+1": "", "1.0": "", "x": "", "": "", "1 ": ""} {
		if got := numberedID(text); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
}
