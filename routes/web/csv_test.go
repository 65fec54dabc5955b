package web_test

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/vigilhealth/vigil/routes/web"
)

func TestCSVSafe(t *testing.T) {
	for cell, want := range map[string]string{
		"":                    "",
		"Lovelace":            "Lovelace",
		"a=b+c-d@e":           "a=b+c-d@e",
		"E11.9;I10":           "E11.9;I10",
		"=1+1":                "'=1+1",
		"+1":                  "'+1",
		"-1":                  "'-1",
		"@SUM(1)":             "'@SUM(1)",
		"\tx":                 "'\tx",
		"\rx":                 "'\rx",
		"\nx":                 "'\nx",
		"＝1+1":                "'＝1+1",
		"＋1":                  "'＋1",
		"－1":                  "'－1",
		"＠SUM":                "'＠SUM",
		"﹦1":                  "'﹦1",
		"﹢1":                  "'﹢1",
		"﹣1":                  "'﹣1",
		"﹫x":                  "'﹫x",
		"⁼1":                  "'⁼1",
		"₊1":                  "'₊1",
		"−1":                  "'−1",
		"  =1":                "  '=1",
		"\u00a0＝1":            "\u00a0'＝1",
		"\u200b=1":            "\u200b'=1",
		"\ufeff=1":            "\ufeff'=1",
		"\u202e=1":            "\u202e'=1",
		"\u3000\u2060\u034f=": "\u3000\u2060\u034f'=",
		"\"=1":                "\"'=1",
		"x;=1":                "x;'=1",
		"x; ＝1;y":             "x; '＝1;y",
		"x\t=1\n@y":           "x\t'=1\n'@y",
		"=;=":                 "'=;'=",
		"\r\n=1":              "'\r\n'=1",
	} {
		if got := web.CSVSafe(cell); got != want {
			t.Errorf("%q: %q, want %q", cell, got, want)
		}
	}
}

func FuzzCSVSafe(f *testing.F) {
	for _, seed := range []string{"=1", "\u00a0\u200b＝1", "a;－b", "\xff=", "⁺\n₌", "'=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		safe := web.CSVSafe(cell)
		if strings.ReplaceAll(safe, "'", "") != strings.ReplaceAll(cell, "'", "") {
			t.Fatalf("%q loses text: %q", cell, safe)
		}
		if again := web.CSVSafe(safe); again != safe {
			t.Fatalf("%q is not stable: %q, %q", cell, safe, again)
		}
		for _, part := range strings.FieldsFunc(safe, func(r rune) bool { return strings.ContainsRune(";\t\r\n", r) }) {
			part = strings.TrimLeftFunc(norm.NFKC.String(part), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) })
			if part != "" && strings.ContainsRune("=+-@", rune(part[0])) {
				t.Fatalf("%q opens a formula: %q", cell, part)
			}
		}
	})
}
