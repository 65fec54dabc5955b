package input

import (
	"regexp"
	"strings"
	"time"
)

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
