package fhirserver

import (
	"regexp"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
)

// datePattern matches a FHIR date of any precision, from the year to fractions of a second. It accepts a space for the plus sign of a zone, since an
// unescaped plus sign arrives as a space. Source: FHIR R4, search, "date".
var datePattern = regexp.MustCompile(
	`^(\d{4})(?:-(\d{2})(?:-(\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|[+ -]\d{2}:\d{2})?)?)?)?$`)

// prefixes are the comparison prefixes of a value; a value without one means eq.
var prefixes = []string{"eq", "ne", "gt", "lt", "ge", "le", "sa", "eb", "ap"}

// cutPrefix splits a value into its prefix and the rest.
func cutPrefix(text string) (prefix, value string) {
	for _, p := range prefixes {
		if rest, found := strings.CutPrefix(text, p); found {
			return p, rest
		}
	}
	return "eq", text
}

const msgDate = "Must be a FHIR date: a year, a month, a day or a time with its zone, optionally after a prefix."

// parseDate returns the period that a FHIR date covers. A date without a zone is in the given zone, the practice's.
func parseDate(text string, zone *time.Location) (from, until time.Time, ok bool) {
	m := datePattern.FindStringSubmatch(text)
	if m == nil || m[4] != "" && m[5] == "" {
		return from, until, false
	}
	layout, pieces := "2006", m[1]
	add := func(form, piece string) { layout, pieces = layout+form, pieces+piece }
	next := func(t time.Time) time.Time { return t.AddDate(1, 0, 0) }
	if m[2] != "" {
		add("-01", "-"+m[2])
		next = func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }
	}
	if m[3] != "" {
		add("-02", "-"+m[3])
		next = func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }
	}
	if m[4] != "" {
		add("T15:04", "T"+m[4]+":"+m[5])
		next = func(t time.Time) time.Time { return t.Add(time.Minute) }
	}
	if m[6] != "" {
		add(":05", ":"+m[6])
		next = func(t time.Time) time.Time { return t.Add(time.Second) }
	}
	if m[7] != "" {
		add("."+strings.Repeat("0", len(m[7])), "."+m[7])
		step := time.Duration(1)
		for range 9 - len(m[7]) {
			step *= 10
		}
		step = max(step, time.Microsecond) // stored times have microsecond precision
		next = func(t time.Time) time.Time { return t.Add(step) }
	}
	if m[8] != "" {
		add("Z07:00", strings.Replace(m[8], " ", "+", 1))
	}
	from, err := time.ParseInLocation(layout, pieces, zone)
	if err != nil {
		return from, until, false
	}
	from = from.Truncate(time.Microsecond)
	return from, next(from), true
}

// parseTimeRange parses a prefixed date into a range of instants. Source: FHIR R4, search, "prefix".
func parseTimeRange(text string, zone *time.Location, now time.Time) (collections.TimeRange, bool) {
	prefix, value := cutPrefix(text)
	from, until, ok := parseDate(value, zone)
	if !ok {
		return collections.TimeRange{}, false
	}
	switch prefix {
	case "ne":
		return collections.TimeRange{From: from, Until: until, Outside: true}, true
	case "gt", "sa":
		return collections.TimeRange{From: until}, true
	case "ge":
		return collections.TimeRange{From: from}, true
	case "lt", "eb":
		return collections.TimeRange{Until: from}, true
	case "le":
		return collections.TimeRange{Until: until}, true
	case "ap":
		from, until = widen(from, until, now)
	}
	return collections.TimeRange{From: from, Until: until}, true
}

// widen extends a period for the prefix ap by a tenth of its distance from now, as FHIR recommends.
func widen(from, until, now time.Time) (earlier, later time.Time) {
	near := now.Sub(from).Abs() / 10
	return from.Add(-near), until.Add(near)
}

// parseDayRange parses a prefixed date for comparison with calendar days, such as dates of birth.
func parseDayRange(text string, now time.Time) (collections.TimeRange, bool) {
	return parseTimeRange(text, time.UTC, now)
}

// inRange reports whether an instant lies in the range.
func inRange(s collections.TimeRange, at time.Time) bool {
	within := (s.From.IsZero() || !at.Before(s.From)) && (s.Until.IsZero() || at.Before(s.Until))
	return within != s.Outside
}
