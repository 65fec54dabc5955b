package pdf

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/text/unicode/norm"
)

// missingGlyph replaces a letter that the font lacks or would set incorrectly. It is a box.
const missingGlyph = '□'

// printableText returns the text that the font can set, and whether a letter was replaced: one that the font lacks, or one of a script with
// joined, stacked or right-to-left letters, which fpdf does not shape. A missing name is safer than a wrong one.
func printableText(text string) (shown string, lost bool) {
	var b strings.Builder
	for _, r := range norm.NFC.String(strings.ToValidUTF8(text, "")) {
		switch {
		case r == '\t', unicode.Is(unicode.Zs, r):
			b.WriteByte(' ')
		case r == '\n':
			b.WriteRune(r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r):
		case r > 0xFFFF, needsShaping(r), !inFont(r):
			b.WriteRune(missingGlyph)
			lost = true
		default:
			b.WriteRune(r)
		}
	}
	return b.String(), lost
}

// needsShaping reports letters that fpdf cannot set one after the other.
func needsShaping(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
		unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Thai, unicode.Lao,
		unicode.Tibetan, unicode.Myanmar, unicode.Khmer, unicode.Mongolian) || unicode.Is(unicode.Mn, r)
}

// fontLetters reports which letters the font has; it is computed on first use.
var fontLetters = sync.OnceValue(func() []bool {
	has := make([]bool, 0x10000)
	parsed, err := sfnt.Parse(font)
	if err != nil {
		return slices.Repeat([]bool{true}, len(has)) // the font's own missing-glyph sign is drawn instead
	}
	var buffer sfnt.Buffer
	for r := range has {
		glyph, err := parsed.GlyphIndex(&buffer, rune(r))
		has[r] = err == nil && glyph != 0
	}
	return has
})

func inFont(r rune) bool { return fontLetters()[r] }
