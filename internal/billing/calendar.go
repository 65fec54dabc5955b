package billing

import (
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Span is a range of days, both included.
type Span struct{ Start, End string }

// contains reports whether a day is in a span; a span without an end is open.
func (s Span) contains(day string) bool { return s.Start <= day && (s.End == "" || day <= s.End) }

// OverlapsOpen reports whether a span shares a day with a period; a span without an end is open.
func (s Span) OverlapsOpen(p Span) bool { return s.Start <= p.End && (s.End == "" || s.End >= p.Start) }

// Day returns the practice's calendar day of a time, YYYY-MM-DD.
func (e *Engine) Day(at time.Time) string { return at.In(e.Zone).Format(time.DateOnly) }

// AddDays adds n days to a calendar day.
func AddDays(day string, n int) string { return ParseDay(day).AddDate(0, 0, n).Format(time.DateOnly) }

// ParseDay parses a calendar day as midnight UTC, where every day has 24 hours; the zero time for invalid text.
func ParseDay(day string) time.Time {
	at, _ := time.Parse(time.DateOnly, day)
	return at
}

// DaysBetween returns how many days b is after a.
func DaysBetween(a, b string) int { return int(ParseDay(b).Sub(ParseDay(a)) / (24 * time.Hour)) }

// monthOf returns the month that contains a day.
func monthOf(day string) Span {
	at := ParseDay(day)
	start := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	return Span{start.Format(time.DateOnly), start.AddDate(0, 1, -1).Format(time.DateOnly)}
}

// MonthSpan returns the days of the month YYYY-MM, of the years 1900 to 2200; false for other text. Days of years beyond 9999 would not sort as text.
func MonthSpan(text string) (Span, bool) {
	if _, err := validate.ParseDate(text + "-01"); err != nil {
		return Span{}, false
	}
	return monthOf(text + "-01"), true
}

// TimeRange returns the start of a span of practice days and the first time after it.
func (e *Engine) TimeRange(s Span) (from, to time.Time) {
	return collections.ParseDay(s.Start, e.Zone).UTC(), collections.ParseDay(AddDays(s.End, 1), e.Zone).UTC()
}

// instants returns [Engine.TimeRange] in stored form.
func (e *Engine) instants(s Span) (from, to string) {
	start, end := e.TimeRange(s)
	return collections.FormatInstant(start), collections.FormatInstant(end)
}

// dayOfInstant returns the practice day of a stored instant; "" for none.
func (e *Engine) dayOfInstant(instant string) string {
	if at := collections.ParseInstant(instant); !at.IsZero() {
		return e.Day(at)
	}
	return ""
}
