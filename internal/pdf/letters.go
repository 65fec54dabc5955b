package pdf

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/text/unicode/norm"
)

// missing stands for a letter that the type has not, or that it would set wrongly. It is a box in the font.
const missing = '□'

// settable is a text as the type sets it rightly, and whether a letter was lost: one that the font has not, and those of scripts whose letters
// join, stack or run from right to left, which this type only sets one beside the other. A wrong name is worse than one that is openly not there.
func settable(text string) (shown string, lost bool) {
	var b strings.Builder
	for _, r := range norm.NFC.String(strings.ToValidUTF8(text, "")) {
		switch {
		case r == '\t', unicode.Is(unicode.Zs, r):
			b.WriteByte(' ')
		case r == '\n':
			b.WriteRune(r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r):
		case r > 0xFFFF, shaped(r), !inFont(r):
			b.WriteRune(missing)
			lost = true
		default:
			b.WriteRune(r)
		}
	}
	return b.String(), lost
}

// shaped reports letters that want more than to stand beside each other.
func shaped(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
		unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Thai, unicode.Lao,
		unicode.Tibetan, unicode.Myanmar, unicode.Khmer, unicode.Mongolian) || unicode.Is(unicode.Mn, r)
}

// letters are those that the font has, found when first asked for.
var letters = sync.OnceValue(func() []bool {
	has := make([]bool, 0x10000)
	parsed, err := sfnt.Parse(font)
	if err != nil {
		return slices.Repeat([]bool{true}, len(has)) // then the font's own sign of a missing letter shows
	}
	var buffer sfnt.Buffer
	for r := range has {
		glyph, err := parsed.GlyphIndex(&buffer, rune(r))
		has[r] = err == nil && glyph != 0
	}
	return has
})

func inFont(r rune) bool { return letters()[r] }
