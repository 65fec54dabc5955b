package billing

import (
	"time"

	"github.com/vigilhealth/vigil/collections"
)

// Span is a stretch of days, both included.
type Span struct{ Start, End string }

// contains reports whether a day lies in a span; one without an end goes on.
func (s Span) contains(day string) bool { return s.Start <= day && (s.End == "" || day <= s.End) }

// OverlapsOpen reports whether a span, which goes on where it has no end, shares a day with a period.
func (s Span) OverlapsOpen(p Span) bool { return s.Start <= p.End && (s.End == "" || s.End >= p.Start) }

// Day is the practice's calendar day of a moment, YYYY-MM-DD.
func (e *Engine) Day(at time.Time) string { return at.In(e.Zone).Format(time.DateOnly) }

// AddDays moves a calendar day.
func AddDays(day string, n int) string { return ParseDay(day).AddDate(0, 0, n).Format(time.DateOnly) }

// ParseDay reads a calendar day as midnight UTC, where every day has 24 hours; the zero time when it is none.
func ParseDay(day string) time.Time {
	at, _ := time.Parse(time.DateOnly, day)
	return at
}

// DaysBetween is how many days later b is than a.
func DaysBetween(a, b string) int { return int(ParseDay(b).Sub(ParseDay(a)) / (24 * time.Hour)) }

// monthOf is the month that holds a day.
func monthOf(day string) Span {
	at := ParseDay(day)
	start := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	return Span{start.Format(time.DateOnly), start.AddDate(0, 1, -1).Format(time.DateOnly)}
}

// MonthSpan is the month YYYY-MM as days; false when the text is none.
func MonthSpan(text string) (Span, bool) {
	if len(text) != len("2006-01") || ParseDay(text+"-01").IsZero() {
		return Span{}, false
	}
	return monthOf(text + "-01"), true
}

// Bounds are the first moment of a span of practice days, and the first after it.
func (e *Engine) Bounds(s Span) (from, to time.Time) {
	return collections.ParseDay(s.Start, e.Zone).UTC(), collections.ParseDay(AddDays(s.End, 1), e.Zone).UTC()
}

// instants are [Engine.Bounds] as they are stored.
func (e *Engine) instants(s Span) (from, to string) {
	start, end := e.Bounds(s)
	return collections.Instant(start), collections.Instant(end)
}

// dayOfInstant is the practice day of a stored instant; "" for none.
func (e *Engine) dayOfInstant(instant string) string {
	if at := collections.ParseInstant(instant); !at.IsZero() {
		return e.Day(at)
	}
	return ""
}
