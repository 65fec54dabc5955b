package x12

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/vigilhealth/vigil/internal/validate"
)

// basicPunctuation are the characters of X12's basic set beside letters, digits and the blank, without those that we separate with. Source: 005010X222A1,
// appendix B, "Basic Character Set".
const basicPunctuation = `!"&'()+,-./;?=`

// transliterations are letters that do not come apart into a basic one and a mark, and signs that have a plain form.
var transliterations = map[rune]string{
	'Æ': "AE", 'Œ': "OE", 'Ø': "O", 'Ł': "L", 'Đ': "D", 'Ð': "D", 'Þ': "TH", 'ẞ': "SS", 'Ħ': "H", 'Ŧ': "T", 'Ŋ': "NG", 'Ə': "E", 'ĸ': "K", 'Ɓ': "B",
	'’': "'", '‘': "'", 'ʼ': "'", 'ʻ': "'", '`': "'", '´': "'", '“': `"`, '”': `"`, '–': "-", '—': "-", '‐': "-", '‑': "-", '…': "...",
}

// toBasicSet is a text in X12's basic set: upper case, letters without their marks, separators and other signs as a blank, one blank at a time. False
// where a letter or a digit has no such form: half a name would be another one.
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

// digits are those of a text; false for letters among them.
func digits(text string) (string, bool) {
	return validate.Digits(text), strings.IndexFunc(text, unicode.IsLetter) < 0
}

// isNPI holds a number to its check digit: Luhn, over the digits with 80840 before them. Source: CMS, National Provider Identifier check digit
// requirements (2004).
func isNPI(number string) bool {
	if len(number) != 10 || !isNumeric(number) {
		return false
	}
	sum := 0
	for i, r := range "80840" + number {
		digit := int(r - '0')
		if i%2 == 1 { // of fifteen digits these are doubled
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return sum%10 == 0
}
