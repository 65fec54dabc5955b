package fhirserver

import (
	"regexp"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
)

// datePattern is a date of FHIR, as precise as one likes: from the year to the fraction of a second. A plus sign that came as a space, because
// nobody escaped it, is read as one. Source: FHIR R4, search, "date".
var datePattern = regexp.MustCompile(
	`^(\d{4})(?:-(\d{2})(?:-(\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|[+ -]\d{2}:\d{2})?)?)?)?$`)

// prefixes are how a value compares; none is eq.
var prefixes = []string{"eq", "ne", "gt", "lt", "ge", "le", "sa", "eb", "ap"}

// cutPrefix parts the prefix from a value.
func cutPrefix(text string) (prefix, value string) {
	for _, p := range prefixes {
		if rest, found := strings.CutPrefix(text, p); found {
			return p, rest
		}
	}
	return "eq", text
}

const msgDate = "Must be a date as FHIR writes it: a year, a month, a day or a time with its zone, after a prefix if need be."

// parseDate is the stretch of time that a date of FHIR names; what has no zone is a time of the practice's.
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
		step = max(step, time.Microsecond) // times are kept no more exactly
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

// stretch is what a date with a prefix asks of a moment. Source: FHIR R4, search, "prefix".
func stretch(text string, zone *time.Location, now time.Time) (collections.TimeRange, bool) {
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
		from, until = around(from, until, now)
	}
	return collections.TimeRange{From: from, Until: until}, true
}

// around is what is near to a stretch: a tenth of how long ago it is, as FHIR recommends.
func around(from, until, now time.Time) (earlier, later time.Time) {
	near := now.Sub(from).Abs() / 10
	return from.Add(-near), until.Add(near)
}

// day is what a date with a prefix asks of a day that is known without a time.
func day(text string, now time.Time) (collections.TimeRange, bool) {
	return stretch(text, time.UTC, now)
}

// holds reports whether a moment lies in the stretch.
func holds(s collections.TimeRange, at time.Time) bool {
	within := (s.From.IsZero() || !at.Before(s.From)) && (s.Until.IsZero() || at.Before(s.Until))
	return within != s.Outside
}
