package patients

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/validate"
)

const (
	maxCodes = 12
	// maxNumber is the largest integer id: fifteen digits.
	maxNumber = 999_999_999_999_999

	msgObject   = "Must be an object."
	msgProvider = "Must be the id of an active provider."
	msgPayer    = "Must be the id of a known payer."
)

var (
	ssnPattern = regexp.MustCompile(`^(?:\d{9}|\d{3}-\d{2}-\d{4})$`)
	zipPattern = regexp.MustCompile(`^\d{5}(?:-\d{4})?$`)

	// mailboxPattern is RFC 5321 section 4.1.2: a dot-string or quoted string, then a domain or address literal.
	mailboxPattern = regexp.MustCompile(`^(?:[A-Za-z0-9!#$%&'*+/=?^_\x60{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_\x60{|}~-]+)*|"(?:[ !#-\[\]-~]|\\[ -~])*")` +
		`@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*|\[(?:\d{1,3}(?:\.\d{1,3}){3}|IPv6:[0-9A-Fa-f:.]+)\])$`)

	// stateCodes are the two-letter codes of the United States Postal Service.
	stateCodes = strings.Fields(`AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH
		NJ NM NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY AS GU MP PR VI UM FM MH PW AA AE AP`)

	dayNames = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
)

// readNumber returns the optional integer id of another object; 0 for none.
func readNumber(c *validate.Checks, name string, f validate.Integer, complaint string) int64 {
	id := c.Integer(name, f, false)
	if id == nil {
		return 0
	}
	if *id < 1 || *id > maxNumber {
		c.Reject(name, complaint)
		return 0
	}
	return *id
}

func readBirthDate(c *validate.Checks, f validate.String, today string) string {
	text := c.Text("date_of_birth", f, validate.Required(0).Identifier())
	if text == "" {
		return ""
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		c.Reject("date_of_birth", "Must be a date in the form YYYY-MM-DD.")
	} else if text < "1900-01-01" || text > today {
		c.Reject("date_of_birth", "Must be between 1900-01-01 and today.")
	}
	return text
}

// readSSN returns the nine digits. Source: docs/decisions/patients.md, "SSN".
func readSSN(c *validate.Checks, f validate.String) string {
	text := c.Text("ssn", f, validate.Optional(0).Identifier().Matching(ssnPattern, "Must have the form AAA-GG-SSSS or nine digits."))
	digits := validate.Digits(text)
	if text == "" || len(digits) != 9 {
		return ""
	}
	if area := digits[:3]; area == "000" || area == "666" || area[0] == '9' {
		c.Reject("ssn", "The area number may not be 000, 666 or 900 to 999.")
	}
	if digits[3:5] == "00" {
		c.Reject("ssn", "The group number may not be 00.")
	}
	if digits[5:] == "0000" {
		c.Reject("ssn", "The serial number may not be 0000.")
	}
	return digits
}

func readEmail(c *validate.Checks, f validate.String) string {
	text := c.Text("email", f, validate.Optional(254).Identifier())
	if text != "" && (!mailboxPattern.MatchString(text) || strings.LastIndexByte(text, '@') > 64) {
		c.Reject("email", "Must be a valid e-mail address.")
	}
	return text
}

func country(c *validate.Checks, f validate.String) string {
	text := c.Text("address.country", f, validate.Optional(50))
	switch {
	case text == "":
		return "US"
	case len([]rune(text)) == 1:
		c.Reject("address.country", "Ensure this field has at least 2 characters.")
	case len(text) == 2:
		return strings.ToUpper(text)
	}
	return text
}

func perDay(c *validate.Checks, name string, f validate.Integer) int {
	n := c.Integer(name, f, true)
	if n == nil {
		return 0
	}
	if *n < 1 || *n > 8 {
		c.Reject(name, "Must be between 1 and 8.")
		return 0
	}
	return int(*n)
}

// weekdays returns the named days in the order of the week; nil for every day.
func weekdays(c *validate.Checks, name string, f validate.Field[[]validate.String]) []string {
	list, ok := validate.Nested(c, name, f, "Must be a list of weekdays.")
	if !ok {
		return nil
	}
	if len(list) == 0 {
		c.Reject(name, "Must name at least one weekday.")
	}
	var days []string
	for i, item := range list {
		item.Value = strings.ToLower(item.Value)
		days = append(days, c.Text(fmt.Sprintf("%s.%d", name, i), item, validate.Required(0).OneOf(dayNames...)))
	}
	slices.SortFunc(days, func(a, b string) int { return slices.Index(dayNames, a) - slices.Index(dayNames, b) })
	return slices.Compact(days)
}
