package validate

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
)

const (
	msgInstant = "Must be an ISO 8601 date-time."
	msgDate    = "Must be a date in the form YYYY-MM-DD."
	msgFuture  = "Measurement time is in the future."
)

// The date-times of ISO 8601 that common languages print: with or without seconds and a fraction, after a point or a comma; an offset with or
// without a colon or minutes; a space for the T; and the basic format. A zone in brackets after the offset (RFC 9557) is ignored.
var (
	extendedInstant = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d+))?)?(?:([Zz]|[+-]\d{2}(?::?\d{2})?)(?:\[[A-Za-z0-9/_+-]+\])?)?$`)
	basicInstant    = regexp.MustCompile(`^(\d{4})(\d{2})(\d{2})[Tt](\d{2})(\d{2})(?:(\d{2})(?:[.,](\d+))?)?([Zz]|[+-]\d{2}(?::?\d{2})?)?$`)
)

// HasZone reports whether a date-time names its offset; one without is read as UTC.
func HasZone(text string) bool {
	text = strings.TrimSpace(text)
	if m := extendedInstant.FindStringSubmatch(text); m != nil {
		return m[5] != ""
	}
	m := basicInstant.FindStringSubmatch(text)
	return m == nil || m[8] != ""
}

// ParseInstant parses an ISO 8601 date-time and returns it in UTC, truncated to microseconds. A missing offset means UTC; a leap second becomes
// :59.999. Years 1900 to 2200 are allowed. Source: docs/decisions/conventions.md, "Timestamps in".
func ParseInstant(text string) (time.Time, error) {
	m := extendedInstant.FindStringSubmatch(text)
	if b := basicInstant.FindStringSubmatch(text); b != nil {
		m = []string{text, b[1] + "-" + b[2] + "-" + b[3], b[4] + ":" + b[5], b[6], b[7], b[8]}
	}
	if m == nil {
		return time.Time{}, fmt.Errorf("not an ISO 8601 date-time")
	}
	date, clock, seconds, fraction, offset := m[1], m[2], cmp.Or(m[3], "00"), m[4], cmp.Or(strings.ToUpper(m[5]), "Z")
	if digits := strings.Replace(offset, ":", "", 1); digits != "Z" {
		digits = (digits + "00")[:5]
		offset = digits[:3] + ":" + digits[3:]
	}
	if len(offset) > 1 && offset[1:3] > "23" { // Go's parser takes 24
		return time.Time{}, fmt.Errorf("not an offset")
	}
	if seconds == "60" {
		seconds, fraction = "59", "999"
	}
	if len(fraction) > 6 {
		fraction = fraction[:6]
	}
	if fraction != "" {
		seconds += "." + fraction
	}
	at, err := time.Parse(time.RFC3339Nano, date+"T"+clock+":"+seconds+offset)
	if err != nil {
		return time.Time{}, fmt.Errorf("not a calendar time")
	}
	at = at.UTC()
	if at.Year() < 1900 || at.Year() > 2200 {
		return time.Time{}, fmt.Errorf("year out of range")
	}
	return at, nil
}

// ParseDate parses exactly YYYY-MM-DD, years 1900 to 2200.
func ParseDate(text string) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil || day.Year() < 1900 || day.Year() > 2200 {
		return time.Time{}, fmt.Errorf("not a date")
	}
	return day, nil
}

// Instant returns the time in UTC, or the zero time if it was rejected or is absent.
func (c *Checks) Instant(name string, f String, required bool) time.Time {
	if !hasValue(c, name, f, required, msgInstant) {
		return time.Time{}
	}
	at, err := ParseInstant(strings.TrimSpace(f.Value))
	if err != nil {
		c.Reject(name, msgInstant)
	}
	return at
}

// Date returns the date as YYYY-MM-DD, or "" if it was rejected or is absent.
func (c *Checks) Date(name string, f String, required bool) string {
	if !hasValue(c, name, f, required, msgDate) {
		return ""
	}
	text := strings.TrimSpace(f.Value)
	if _, err := ParseDate(text); err != nil {
		c.Reject(name, msgDate)
		return ""
	}
	return text
}

// NotFuture rejects a measurement time more than tolerance ahead of now. Source: docs/decisions/conventions.md, "Future and past measurement
// times".
func (c *Checks) NotFuture(name string, at, now time.Time, tolerance time.Duration) {
	if at.After(now.Add(tolerance)) {
		c.Reject(name, msgFuture)
	}
}

// FormatInstant formats a time as the API returns it: UTC with Z, and no fraction if it is zero, else three or six digits.
// Source: docs/decisions/conventions.md, "Timestamps out".
func FormatInstant(at time.Time) string {
	at = at.UTC().Truncate(time.Microsecond)
	switch ns := at.Nanosecond(); {
	case ns == 0:
		return at.Format("2006-01-02T15:04:05Z")
	case ns%int(time.Millisecond) == 0:
		return at.Format("2006-01-02T15:04:05.000Z")
	default:
		return at.Format("2006-01-02T15:04:05.000000Z")
	}
}
