package messaging

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/vigilhealth/vigil/internal/notifications"
)

// Each template fits one text message in both languages, with the longest name of a practice, and names the practice and how to stop.
func TestTemplatesFitOneMessage(t *testing.T) {
	names := map[string]string{
		"Hill": "Hill", "Clínica Médica de San José y Niños": "Clinica Médica de San José y Niños",
		strings.Repeat("Family ", 12): "Family Family Family Family Family", "健康": "Your care team",
	}
	for name, short := range names {
		for _, template := range StaffTemplates {
			for _, lang := range []string{English, Spanish} {
				text := Template(template).Fill(lang, name, "Please call us.")
				if n := len([]rune(text)); n > MaxLength || segments(text) != 1 {
					t.Errorf("%s %s: %d characters, %d segments: %s", template, lang, n, segments(text), text)
				}
				if !strings.HasPrefix(text, short+": ") || !strings.Contains(text, "STOP") || strings.ContainsAny(text, "{}") {
					t.Errorf("%s %s: %s", template, lang, text)
				}
				if kinds := PrivateContent(text, short); kinds != nil {
					t.Errorf("%s %s has %v: %s", template, lang, kinds, text)
				}
			}
			if Template(template).Fill(English, name, "x") == Template(template).Fill(Spanish, name, "x") {
				t.Errorf("%s is not translated", template)
			}
		}
		for _, lang := range []string{English, Spanish} {
			if text := FreeText.Fill(lang, name, strings.Repeat("a", MaxFreeText(lang, name))); len([]rune(text)) != MaxLength {
				t.Errorf("the room of %q is %d characters of %d", name, len([]rune(text)), MaxLength)
			}
		}
	}
}

// Source: 3GPP TS 23.038: 160 characters of the 7-bit alphabet, 70 others; brackets and the euro count as two.
func TestSegments(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 1},
		{strings.Repeat("a", 160), 1},
		{strings.Repeat("a", 161), 2},
		{strings.Repeat("a", 306), 2},
		{strings.Repeat("a", 307), 3},
		{strings.Repeat("ñ", 160), 1},
		{strings.Repeat("á", 70), 1},
		{strings.Repeat("á", 71), 2},
		{strings.Repeat("a", 70) + "í", 2},
		{strings.Repeat("€", 80), 1},
		{strings.Repeat("€", 81), 2},
		{strings.Repeat("😀", 35), 1},
		{strings.Repeat("😀", 36), 2},
	} {
		if got := segments(c.text); got != c.want {
			t.Errorf("%d characters of %.4q: %d, want %d", len([]rune(c.text)), c.text, got, c.want)
		}
	}
}

func TestLanguage(t *testing.T) {
	for preferred, want := range map[string]string{
		"": English, "en": English, "en-US": English, "es": Spanish, "es-MX": Spanish, "es-419": Spanish, "ES": Spanish, "zh": English, "vi": English, "xx-": English,
	} {
		if got := notifications.Language(preferred); got != want {
			t.Errorf("%q: %s, want %s", preferred, got, want)
		}
	}
}

// segments returns how many text messages a text is billed as: 160 characters of the 7-bit alphabet, or 70 others, and fewer in each of several.
// Source: 3GPP TS 23.038 and 23.040.
func segments(text string) int {
	units, alone, joined := 0, 160, 153
	for _, r := range text {
		units++
		if strings.ContainsRune("^{}\\[~]|€", r) { // two of the alphabet
			units++
		} else if !inGSM(r) {
			alone, joined = 70, 67
		}
	}
	if joined == 67 {
		units = 0
		for _, r := range text {
			units += utf16.RuneLen(r)
		}
	}
	if units <= alone {
		return 1
	}
	return (units + joined - 1) / joined
}

// What staff write ends before the words on how to stop, whether or not they end it with a period.
func TestFreeTextStandsApart(t *testing.T) {
	if got := FreeText.Fill(English, "Maple Street Clinic", " Call us when you can "); got != "Maple Street Clinic: Call us when you can\nReply STOP to stop." {
		t.Errorf("%q", got)
	}
}
