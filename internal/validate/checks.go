package validate

import (
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

// The messages every field can meet.
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

// Checks collects what is wrong with a body, field by field.
type Checks struct {
	// Fields holds the messages so far.
	Fields fault.Fields
}

// NewChecks returns an empty collection.
func NewChecks() *Checks { return &Checks{Fields: fault.Fields{}} }

// Err is nil when nothing was wrong, else a validation fault with every message.
func (c *Checks) Err() error { return c.Fields.Err() }

// Reject adds a message to a field.
func (c *Checks) Reject(name, message string) { c.Fields.Add(name, message) }

// usable reports whether the field has a value to look at; it complains about wrong types, and about absence when required.
func usable[T any](c *Checks, name string, f Field[T], required bool, wrongType string) bool {
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

// TextRule is one condition on a text field.
type TextRule struct {
	required, filled, multiline, identifier, lookedUp bool
	max                                               int
	oneOf                                             []string
	pattern                                           *regexp.Regexp
	unlike                                            string // what is said of text that does not match it
}

// Required text may not be absent, null or blank.
func Required(max int) TextRule { return TextRule{required: true, max: max} }

// Optional text is "" when absent, null or blank.
func Optional(max int) TextRule { return TextRule{max: max} }

// Filled text may be absent or null, but not blank.
func (r TextRule) Filled() TextRule { r.filled = true; return r }

// Multiline lets newline and tab through: free text. What is invisible is taken out of it, not refused.
func (r TextRule) Multiline() TextRule { r.multiline = true; return r }

// Identifier admits only characters that have a shape of their own: what names one thing must not have a twin that looks the same.
func (r TextRule) Identifier() TextRule { r.identifier = true; return r }

// LookedUp text is compared and never stored, and nobody reads it: what is invisible stays, and finds nothing.
func (r TextRule) LookedUp() TextRule { r.lookedUp = true; return r }

// OneOf admits only the listed values.
func (r TextRule) OneOf(values ...string) TextRule { r.oneOf = values; return r }

// Matching admits only what has a form; complaint says which.
func (r TextRule) Matching(form *regexp.Regexp, complaint string) TextRule {
	r.pattern, r.unlike = form, complaint
	return r
}

// Text returns the trimmed, NFC-normalised text, or "" after a complaint.
// Source: docs/decisions/conventions.md, "String normalization" and docs/decisions/limits.md, "Maximum lengths".
func (c *Checks) Text(name string, f String, rule TextRule) string {
	if !usable(c, name, f, rule.required, msgString) {
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
	case rule.identifier && unfit(text), !rule.multiline && !rule.lookedUp && hasHidden(text):
		c.Reject(name, msgHidden)
	case rule.max > 0 && utf8.RuneCountInString(text) > rule.max:
		c.Reject(name, fmt.Sprintf("Ensure this field has no more than %d characters.", rule.max))
	case rule.oneOf != nil && !slices.Contains(rule.oneOf, text):
		c.Reject(name, fmt.Sprintf("Must be one of: %s.", strings.Join(rule.oneOf, ", ")))
	case rule.pattern != nil && !rule.pattern.MatchString(text):
		c.Reject(name, rule.unlike)
	default:
		return text
	}
	return ""
}

// UUID returns the lower-case UUID, or "" after a complaint or when an optional one is absent.
func (c *Checks) UUID(name string, f String, required bool) string {
	if !usable(c, name, f, required, msgString) {
		return ""
	}
	id, ok := ParseUUID(strings.TrimSpace(f.Value))
	if !ok {
		c.Reject(name, msgUUID)
	}
	return id
}

// ParseUUID reads the hyphenated form, in any case, and returns it in lower case.
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

// Secret returns a password or token exactly as sent; it complains when absent or empty.
func (c *Checks) Secret(name string, f String, max int) string {
	if !usable(c, name, f, true, msgString) {
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

// given is the value that was sent, or nil when absent or after a complaint.
func given[T any](c *Checks, name string, f Field[T], required bool, wrongType string) *T {
	if !usable(c, name, f, required, wrongType) {
		return nil
	}
	return &f.Value
}

// Nested returns the object or list of a member, and whether it is there to look at. It complains, in the words of wrongType, of anything else but null.
func Nested[T any](c *Checks, name string, f Field[T], wrongType string) (value T, ok bool) {
	if f.wrong {
		c.Reject(name, wrongType)
		return value, false
	}
	return f.Value, f.Given()
}

// Number returns the number, or nil when absent or after a complaint.
func (c *Checks) Number(name string, f Number, required bool) *float64 {
	value := given(c, name, f, required, msgNumber)
	if value != nil && (math.IsNaN(*value) || math.IsInf(*value, 0)) {
		c.Reject(name, msgNumber)
		return nil
	}
	return value
}

// Integer returns the whole number, or nil when absent or after a complaint.
func (c *Checks) Integer(name string, f Integer, required bool) *int64 {
	return given(c, name, f, required, msgInteger)
}

// Boolean returns the boolean, or nil when absent or after a complaint.
func (c *Checks) Boolean(name string, f Boolean, required bool) *bool {
	return given(c, name, f, required, msgBoolean)
}

var phonePattern = regexp.MustCompile(`^[0-9+()\-. x]{7,20}$`)

// Phone returns an optional phone number as it was sent, or "" when absent.
// Source: docs/decisions/patients.md, "Field formats".
func (c *Checks) Phone(name string, f String) string {
	text := c.Text(name, f, Optional(20))
	if text != "" && (!phonePattern.MatchString(text) || len(Digits(text)) < 7) {
		c.Reject(name, "Must be a phone number of 7 to 20 characters with at least 7 digits; only digits, spaces and + ( ) - . x are allowed.")
	}
	return text
}

// TimeZone returns an optional IANA time zone name, or "" when absent.
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

// Digits are the ASCII digits of a text, in their order.
func Digits(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, text)
}
