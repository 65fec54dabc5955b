package validate_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/vigilhealth/vigil/internal/validate"
)

// hiddenCharacters have no visible glyph.
var hiddenCharacters = []rune{
	0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x180e, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e,
	0x2060, 0x2061, 0x2064, 0x2066, 0x2067, 0x2068, 0x2069, 0x206a, 0x206f, 0x2800, 0x3164, 0xfeff, 0xffa0, 0xfff9, 0xfffb, 0xfffe, 0x1d173, 0xe0001, 0xe0041, 0xe007f,
}

func TestHiddenCharacters(t *testing.T) {
	for _, r := range hiddenCharacters {
		sent := validate.Of("12" + string(r) + "34")
		for name, rule := range map[string]validate.TextRule{"name": validate.Required(50), "identifier": validate.Optional(50).Identifier()} {
			checks := validate.NewChecks()
			if got := checks.Text("field", sent, rule); got != "" || len(checks.Fields["field"]) != 1 {
				t.Errorf("%U in a %s: %q, %v", r, name, got, checks.Fields)
			}
		}
		want := "1234"
		if r == '\u2028' || r == '\u2029' {
			want = "12\n34"
		}
		checks := validate.NewChecks()
		if got := checks.Text("field", sent, validate.Required(50).Multiline()); got != want || checks.Err() != nil {
			t.Errorf("%U in free text: %q, %v", r, got, checks.Fields)
		}
	}
	checks := validate.NewChecks()
	if checks.Text("field", validate.Of("\u200b\u202e"), validate.Required(50).Multiline()); len(checks.Fields["field"]) != 1 {
		t.Error("text of hidden characters only is not blank")
	}
}

// TestNames covers names in many scripts and names that must be rejected.
func TestNames(t *testing.T) {
	for _, test := range []struct {
		sent             string
		name, identifier bool
	}{
		{"O’Brien-Müller", true, true},
		{"王小明", true, true},
		{"محمد علی", true, true},
		{"عبد\u0627\u0644\u0644\u0647", true, true},
		{"می\u200cخواهم", true, false},        // Persian, non-joiner
		{"ක්\u200dරිස්ටෝ", true, false},       // Sinhala, joiner after a virama
		{"ശ്രീ\u200cനാഥ്", true, false},       // Malayalam
		{"邊\U000E0101", true, false},          // a form of a Japanese family name
		{"ᠮᠣᠩᠭᠣᠯ\u180b", true, false},         // Mongolian
		{"Ann\u200d", false, false},           // looks like Ann
		{"A\u200dnn", false, false},           // so does this
		{"\u200cAnn", false, false},           //
		{"می\u200c\u200cخواهم", false, false}, // doubled
		{"А\u200cнна", false, false},          // Cyrillic
		{"A\u00a0B", true, false},             // no-break space
		{"A\u3000B", true, false},             // ideographic space
		{"A\ue000", true, false},              // private use
		{"A\uffff", false, false},             // no character
		{"👩\u200d⚕", false, false},            //
	} {
		checks := validate.NewChecks()
		checks.Text("name", validate.Of(test.sent), validate.Required(50))
		checks.Text("identifier", validate.Of(test.sent), validate.Required(50).Identifier())
		if (len(checks.Fields["name"]) == 0) != test.name || (len(checks.Fields["identifier"]) == 0) != test.identifier {
			t.Errorf("%q (%+q): %v", test.sent, test.sent, checks.Fields)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, r := range hiddenCharacters {
		f.Add("a" + string(r) + "b\n")
	}
	f.Add("می\u200cخواهم")
	f.Add("ක්\u200dරිස්ටෝ\u200d")
	f.Add("\xff\u202e\x00")
	f.Fuzz(func(t *testing.T, sent string) {
		for _, rule := range []validate.TextRule{validate.Optional(100), validate.Optional(100).Identifier(), validate.Optional(100).Multiline()} {
			checks := validate.NewChecks()
			got := checks.Text("field", validate.Of(sent), rule)
			if again := validate.NewChecks().Text("field", validate.Of(got), rule); again != got {
				t.Fatalf("%+q became %+q and then %+q", sent, got, again)
			}
			if strings.ContainsFunc(got, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) || r == '\ufeff' || r == '\u200b' }) {
				t.Fatalf("%+q became %+q", sent, got)
			}
		}
		line := validate.CleanLine(sent)
		if validate.CleanLine(line) != line {
			t.Fatalf("%+q is cleaned twice", sent)
		}
		if checks := validate.NewChecks(); checks.Text("name", validate.Of(line), validate.Optional(0)) != "" && checks.Err() != nil || len(checks.Fields) > 0 {
			t.Fatalf("%+q is cleaned to %+q, which is refused: %v", sent, line, checks.Fields)
		}
	})
}
