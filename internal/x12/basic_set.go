package x12

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/vigilhealth/vigil/internal/validate"
)

// basicPunctuation lists the punctuation of X12's basic character set, without the separators that this package writes. Source: 005010X222A1,
// appendix B, "Basic Character Set".
const basicPunctuation = `!"&'()+,-./;?=`

// transliterations maps letters that do not decompose into a basic letter and a mark, and signs with a plain form.
var transliterations = map[rune]string{
	'Æ': "AE", 'Œ': "OE", 'Ø': "O", 'Ł': "L", 'Đ': "D", 'Ð': "D", 'Þ': "TH", 'ẞ': "SS", 'Ħ': "H", 'Ŧ': "T", 'Ŋ': "NG", 'Ə': "E", 'ĸ': "K", 'Ɓ': "B",
	'’': "'", '‘': "'", 'ʼ': "'", 'ʻ': "'", '`': "'", '´': "'", '“': `"`, '”': `"`, '–': "-", '—': "-", '‐': "-", '‑': "-", '…': "...",
}

// toBasicSet converts a text to X12's basic character set: upper case, letters without marks, and a single blank for separators and other signs. It
// returns false if a letter or digit has no such form, because a partial name would be a different name.
func toBasicSet(text string) (string, bool) {
	var b strings.Builder
	for _, r := range strings.ToUpper(norm.NFKD.String(strings.ReplaceAll(text, "ß", "SS"))) {
		replacement, known := transliterations[r]
		switch {
		case known:
			b.WriteString(replacement)
		case r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || strings.ContainsRune(basicPunctuation, r):
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r): // the mark of the letter before it
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			return "", false
		default:
			b.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(b.String()), " "), true
}

// digits returns the digits of a text, or false if it contains letters.
func digits(text string) (string, bool) {
	return validate.Digits(text), strings.IndexFunc(text, unicode.IsLetter) < 0
}

// isNPI checks the check digit of a National Provider Identifier: Luhn, over the digits with the prefix 80840. Source: CMS, National Provider
// Identifier check digit requirements (2004).
func isNPI(number string) bool {
	if len(number) != 10 || !isNumeric(number) {
		return false
	}
	sum := 0
	for i, r := range "80840" + number {
		digit := int(r - '0')
		if i%2 == 1 { // every second of the fifteen digits is doubled
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return sum%10 == 0
}
