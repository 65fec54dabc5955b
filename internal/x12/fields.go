package x12

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/vigilhealth/vigil/internal/validate"
)

// Code lists of the guide. Source: 005010X222A1, SBR09, PAT01, SBR02 of 2320, CLM05-03, CLM07, CLM08, CLM09, DMG03; CAS01.
const (
	filingCodes    = "11 12 13 14 15 16 17 AM BL CH CI DS FI HM LM MA MB MC OF TV VA WC ZZ"
	patientCodes   = "01 19 20 21 39 40 53 G8"
	otherCodes     = "18 " + patientCodes
	sequenceCodes  = "P S T A B C D E F G H U"
	insuranceTypes = "12 13 14 15 16 41 42 43 47"
	adjustGroups   = "CO CR OA PI PR"
)

// states are the N402 codes of the United States: states, the district, territories and military mail. Source: USPS Publication 28, appendix B.
const states = "AL AK AS AZ AR CA CO CT DE DC FM FL GA GU HI ID IL IN IA KS KY LA ME MH MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND MP OH OK OR " +
	"PW PA PR RI SC SD TN TX UT VT VI VA WA WV WI WY AE AP AA"

var (
	claimNumber = regexp.MustCompile(`^[A-Z0-9]{1,20}$`)
	procedure   = regexp.MustCompile(`^[A-Z0-9]{5}$`)
	modifier    = regexp.MustCompile(`^[A-Z0-9]{2}$`)
	taxonomy    = regexp.MustCompile(`^[A-Z0-9]{10}$`)
	remarkCode  = regexp.MustCompile(`^[A-Z0-9]{1,50}$`)
	reasonCode  = regexp.MustCompile(`^[A-Z0-9]{1,5}$`)
	diagnosis   = regexp.MustCompile(`^[A-TV-Z][0-9][0-9AB][0-9A-TV-Z]{0,4}$`)
	quantity    = regexp.MustCompile(`^-?[0-9]{1,8}(\.[0-9]{1,3})?$`)
	twoLetters  = regexp.MustCompile(`^[A-Z]{2}$`)
	twoDigits   = regexp.MustCompile(`^[0-9]{2}$`)
)

// maxAmount is the largest amount that the guides allow: eight digits and cents. Source: 005010X222A1, appendix B, "Decimal", on element 782.
const maxAmount Cents = 99_999_999_99

// fields converts values to the guide's formats and collects their errors.
type fields struct {
	claim  string
	errors FieldErrors
}

func (f *fields) reject(field, reason string) string {
	f.errors = append(f.errors, FieldError{Claim: f.claim, Field: field, Reason: reason})
	return ""
}

// optionalText converts a text of at most most characters; it may be empty.
func (f *fields) optionalText(field, value string, most int) string {
	text, ok := toBasicSet(value)
	switch {
	case !ok:
		return f.reject(field, "has letters that X12 cannot carry")
	case len(text) > most:
		return f.reject(field, "has more than "+strconv.Itoa(most)+" characters")
	}
	return text
}

// requiredText converts a text that must not be empty.
func (f *fields) requiredText(field, value string, most int) string {
	before := len(f.errors)
	text := f.optionalText(field, value, most)
	if text == "" && len(f.errors) == before {
		return f.reject(field, "is missing")
	}
	return text
}

// codeMatching checks a code against a pattern.
func (f *fields) codeMatching(field, value string, form *regexp.Regexp) string {
	value = strings.ToUpper(strings.TrimSpace(value))
	if value == "" {
		return f.reject(field, "is missing")
	}
	if !form.MatchString(value) {
		return f.reject(field, "does not have the format that the guide requires")
	}
	return value
}

// codeIn checks a code against a list; an empty value means fallback.
func (f *fields) codeIn(field, value, codes, fallback string) string {
	if value = strings.ToUpper(strings.TrimSpace(value)); value == "" {
		value = fallback
	}
	switch {
	case value == "":
		return f.reject(field, "is missing")
	case !inList(codes, value):
		return f.reject(field, "is not one of "+codes)
	}
	return value
}

func (f *fields) npi(field, value string) string {
	switch value = strings.TrimSpace(value); {
	case value == "":
		return f.reject(field, "is missing")
	case !isNPI(value):
		return f.reject(field, "is no NPI: ten digits, the last a check digit")
	}
	return value
}

// digitString returns the digits of a value, which must have one of the lengths; other characters are ignored.
func (f *fields) digitString(field, value string, lengths ...int) string {
	text, ok := digits(value)
	for _, length := range lengths {
		if ok && len(text) == length {
			return text
		}
	}
	if text == "" && ok {
		return f.reject(field, "is missing")
	}
	return f.reject(field, "does not have the number of digits that the guide requires")
}

func (f *fields) day(field, value string) string {
	if value == "" {
		return f.reject(field, "is missing")
	}
	day, err := time.Parse(time.DateOnly, value)
	if err != nil {
		return f.reject(field, "is no date")
	}
	return day.Format("20060102")
}

func (f *fields) money(field string, value Cents) string {
	if value < 0 || value > maxAmount {
		return f.reject(field, "is below zero or too large")
	}
	return value.decimal()
}

// intInRange formats a number from 1 to most.
func (f *fields) intInRange(field string, value, most int) string {
	if value < 1 || value > most {
		return f.reject(field, "must be 1 to "+strconv.Itoa(most))
	}
	return strconv.Itoa(value)
}

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
