package validate

import (
	"encoding/json/jsontext"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"

	"github.com/vigilhealth/vigil/internal/fault"
)

// Messages that apply to every field.
const (
	msgRequired = "This field is required."
	msgNull     = "This field may not be null."
	msgBlank    = "This field may not be blank."
	msgString   = "Not a valid string."
	msgNumber   = "A valid number is required."
	msgInteger  = "A valid integer is required."
	msgBoolean  = "Must be true or false."
	msgControl  = "Control characters are not allowed."
	msgHidden   = "Characters that are invisible or change the direction of text are not allowed."
	msgUUID     = "Must be a valid UUID."
)

// Checks collects the errors of a request body by field.
type Checks struct {
	// Fields holds the messages.
	Fields fault.Fields
}

// NewChecks returns an empty Checks.
func NewChecks() *Checks { return &Checks{Fields: fault.Fields{}} }

// Err returns a validation fault with all messages, or nil if there are none.
func (c *Checks) Err() error { return c.Fields.Err() }

// Reject adds a message to a field.
func (c *Checks) Reject(name, message string) { c.Fields.Add(name, message) }

// hasValue reports whether the field has a value to check. It rejects a wrong type, and an absent or null value if required.
func hasValue[T any](c *Checks, name string, f Field[T], required bool, wrongType string) bool {
	switch {
	case f.wrong:
		c.Reject(name, wrongType)
	case !f.present && required:
		c.Reject(name, msgRequired)
	case f.null && required:
		c.Reject(name, msgNull)
	default:
		return f.Given()
	}
	return false
}

// TextRule is the set of conditions on a text field.
type TextRule struct {
	required, filled, multiline, identifier, lookupOnly bool
	max                                                 int
	oneOf                                               []string
	pattern                                             *regexp.Regexp
	mismatch                                            string // the message for text that does not match the pattern
}

// Required returns a rule for text that must not be absent, null or blank.
func Required(max int) TextRule { return TextRule{required: true, max: max} }

// Optional returns a rule for text that is "" if absent, null or blank.
func Optional(max int) TextRule { return TextRule{max: max} }

// Filled rejects blank text. Absent and null stay allowed.
func (r TextRule) Filled() TextRule { r.filled = true; return r }

// Multiline allows newlines and tabs. Hidden characters are removed instead of rejected.
func (r TextRule) Multiline() TextRule { r.multiline = true; return r }

// Identifier allows only visible characters, so that two identifiers cannot look the same.
func (r TextRule) Identifier() TextRule { r.identifier = true; return r }

// LookupOnly is for text that is only compared, never stored or shown: hidden characters are kept and match nothing.
func (r TextRule) LookupOnly() TextRule { r.lookupOnly = true; return r }

// OneOf allows only the listed values.
func (r TextRule) OneOf(values ...string) TextRule { r.oneOf = values; return r }

// Matching allows only text of the given form; complaint is the message otherwise.
func (r TextRule) Matching(form *regexp.Regexp, complaint string) TextRule {
	r.pattern, r.mismatch = form, complaint
	return r
}

// Text returns the trimmed, NFC-normalized text, or "" if it was rejected. Source: docs/decisions/conventions.md, "String normalization" and
// docs/decisions/limits.md, "Maximum lengths".
func (c *Checks) Text(name string, f String, rule TextRule) string {
	if !hasValue(c, name, f, rule.required, msgString) {
		return ""
	}
	text := norm.NFC.String(strings.TrimSpace(f.Value))
	if rule.multiline {
		text = strings.TrimSpace(Clean(text))
	}
	switch {
	case text == "" && (rule.required || rule.filled):
		c.Reject(name, msgBlank)
	case text == "":
	case hasControl(text, rule.multiline):
		c.Reject(name, msgControl)
	case rule.identifier && hasNonIdentifierRune(text), !rule.multiline && !rule.lookupOnly && hasHidden(text):
		c.Reject(name, msgHidden)
	case rule.max > 0 && utf8.RuneCountInString(text) > rule.max:
		c.Reject(name, fmt.Sprintf("Ensure this field has no more than %d characters.", rule.max))
	case rule.oneOf != nil && !slices.Contains(rule.oneOf, text):
		c.Reject(name, fmt.Sprintf("Must be one of: %s.", strings.Join(rule.oneOf, ", ")))
	case rule.pattern != nil && !rule.pattern.MatchString(text):
		c.Reject(name, rule.mismatch)
	default:
		return text
	}
	return ""
}

// UUID returns the UUID in lower case, or "" if it was rejected or is absent.
func (c *Checks) UUID(name string, f String, required bool) string {
	if !hasValue(c, name, f, required, msgString) {
		return ""
	}
	id, ok := ParseUUID(strings.TrimSpace(f.Value))
	if !ok {
		c.Reject(name, msgUUID)
	}
	return id
}

// ParseUUID parses the hyphenated form, in any case, and returns it in lower case.
func ParseUUID(text string) (string, bool) {
	if len(text) != 36 {
		return "", false
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return "", false
	}
	return id.String(), true
}

// Secret returns a password or token exactly as sent. It rejects an absent or empty one.
func (c *Checks) Secret(name string, f String, max int) string {
	if !hasValue(c, name, f, true, msgString) {
		return ""
	}
	switch {
	case f.Value == "":
		c.Reject(name, msgBlank)
	case max > 0 && utf8.RuneCountInString(f.Value) > max:
		c.Reject(name, fmt.Sprintf("Ensure this field has no more than %d characters.", max))
	default:
		return f.Value
	}
	return ""
}

// optionalValue returns the value, or nil if it was rejected or is absent.
func optionalValue[T any](c *Checks, name string, f Field[T], required bool, wrongType string) *T {
	if !hasValue(c, name, f, required, wrongType) {
		return nil
	}
	return &f.Value
}

// Nested returns the object or list of a member and whether it was sent. It rejects any other type except null with the message wrongType.
func Nested[T any](c *Checks, name string, f Field[T], wrongType string) (value T, ok bool) {
	if f.wrong {
		c.Reject(name, wrongType)
		return value, false
	}
	return f.Value, f.Given()
}

// UnknownMembers are the members of a body that its type does not name, for bodies in which a misspelled member would be missed only when it is needed.
type UnknownMembers map[string]jsontext.Value

// RejectUnknown rejects each of the other members; prefix is the path of the body, with a dot at its end.
func (c *Checks) RejectUnknown(prefix string, others UnknownMembers) {
	for name := range others {
		c.Reject(prefix+name, "There is no such member.")
	}
}

// Number returns the number, or nil if it was rejected or is absent.
func (c *Checks) Number(name string, f Number, required bool) *float64 {
	value := optionalValue(c, name, f, required, msgNumber)
	if value != nil && (math.IsNaN(*value) || math.IsInf(*value, 0)) {
		c.Reject(name, msgNumber)
		return nil
	}
	return value
}

// Integer returns the whole number, or nil if it was rejected or is absent.
func (c *Checks) Integer(name string, f Integer, required bool) *int64 {
	return optionalValue(c, name, f, required, msgInteger)
}

// Boolean returns the boolean, or nil if it was rejected or is absent.
func (c *Checks) Boolean(name string, f Boolean, required bool) *bool {
	return optionalValue(c, name, f, required, msgBoolean)
}

var phonePattern = regexp.MustCompile(`^[0-9+()\-. x]{7,20}$`)

// MRNPattern is the form of a medical record number. Source: docs/decisions/patients.md, "Field formats".
var MRNPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Phone returns an optional phone number as sent, or "" if absent. Source: docs/decisions/patients.md, "Field formats".
func (c *Checks) Phone(name string, f String) string {
	text := c.Text(name, f, Optional(20))
	if text != "" && (!phonePattern.MatchString(text) || len(Digits(text)) < 7) {
		c.Reject(name, "Must be a phone number of 7 to 20 characters with at least 7 digits; only digits, spaces and + ( ) - . x are allowed.")
	}
	return text
}

// TimeZone returns an optional IANA time zone name, or "" if absent.
func (c *Checks) TimeZone(name string, f String) string {
	text := c.Text(name, f, Optional(64))
	if text == "" {
		return ""
	}
	if _, err := time.LoadLocation(text); err != nil || text == "Local" {
		c.Reject(name, "Must be an IANA time zone name, such as America/New_York.")
	}
	return text
}

// Digits returns the ASCII digits of a text.
func Digits(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, text)
}

// ValidNPI reports whether npi is a National Provider Identifier: ten digits, the last by the Luhn formula over "80840" and the first nine (45
// CFR 162.406).
func ValidNPI(npi string) bool {
	if len(npi) != 10 || Digits(npi) != npi || npi[0] != '1' && npi[0] != '2' {
		return false
	}
	sum := 24 // Luhn sum of the constant prefix 80840
	for i := range 10 {
		digit := int(npi[i] - '0')
		if i%2 == 0 {
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return sum%10 == 0
}

var icd10 = regexp.MustCompile(`^[A-TV-Z][0-9][0-9AB](?:\.[0-9A-TV-Z]{1,4})?$`)

// ValidICD10 reports whether code has the form of an ICD-10-CM diagnosis code, with its dot and in capitals. Source: docs/decisions/billing.md,
// "ICD-10".
func ValidICD10(code string) bool { return icd10.MatchString(code) }

// TaxonomyCode matches a code of the NUCC Health Care Provider Taxonomy: nine letters and digits and an X, such as "207Q00000X".
var TaxonomyCode = regexp.MustCompile(`^[0-9]{3}[0-9A-Z]{6}X$`)
