// Package billing knows money: the CPT rules as dated data, which days and minutes make a billing entry, the states of a claim, what stands
// behind each entry, and what is still missing. Everything that decides is plain: facts and a moment in, drafts out; what decides nothing only
// stores, once, whatever runs beside it.
//
// It counts days from reading_days and minutes from time entries and never looks through observations; it computes in whole cents. It refuses
// to know requests, and it never sends anything anywhere.
package billing

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/claims"
)

// Cents is money in whole US cents. In JSON it is the amount in dollars with two decimals.
type Cents int64

// String is the amount in dollars with two decimals and a point: "43.02".
func (c Cents) String() string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	return fmt.Sprintf("%s%d.%02d", sign, int64(c)/100, int64(c)%100)
}

// MarshalJSON writes the amount as a number.
func (c Cents) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// maxChargeCents bounds every amount that somebody types.
const maxDollars = 1_000_000

// CentsOf reads dollars; false for a negative amount, one of more than a million, and fractions of a cent.
func CentsOf(dollars float64) (Cents, bool) {
	text := strconv.FormatFloat(dollars, 'f', -1, 64)
	cents := math.Round(dollars * 100)
	if dollars < 0 || dollars > maxDollars || math.IsNaN(dollars) || Cents(cents).shortest() != text {
		return 0, false
	}
	return Cents(cents), true
}

// CheckRate says what is wrong with a rate that somebody wrote past the API, "" for nothing: cents must be whole and as [CentsOf] takes them, the
// day YYYY-MM-DD.
func CheckRate(code string, cents float64, day string) string {
	known := slices.ContainsFunc((&Engine{}).Catalog(), func(row CatalogRow) bool { return row.Code == code })
	if !known {
		return "The CPT code is not in the catalogue."
	}
	if _, ok := CentsOf(cents / 100); !ok || cents != math.Trunc(cents) {
		return "A rate is 0 to 100000000 whole cents."
	}
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return "The effective date must be YYYY-MM-DD."
	}
	return ""
}

// shortest is the shortest form of the amount.
func (c Cents) shortest() string {
	return strconv.FormatFloat(float64(c)/100, 'f', -1, 64)
}

// Settings are what a practice chooses.
type Settings struct {
	Zone                  *time.Location // months and service dates are the practice's
	Enable2026Codes       bool           // 99445 and 99470
	MaxUnits99458         int
	RequireConsent        bool
	RequireOrder          bool // nothing is billed that nobody ordered; otherwise a warning says so
	RequireSecondReviewer bool // the creator of a manual entry cannot review it
	EscalationTimeCap     time.Duration
	Claims                claims.Loader // what a claim says of the practice
	Locality              string        // of the Medicare fee schedule; "" for the nation's figures
	LiveContactFrom       string        // practice day from which interactive time counts only with a live way of contact; "" for never
	TimeRule              string        // [InteractiveOnly], also for "", or [WithCareManagement]
	TimeRuleFrom          string        // first day of the months of service that the rule is for; "" for since CMS's
	ReadingsPending       func() bool   // long work makes way for them; nil for never
}

// Engine plans and stores billing entries by a practice's settings.
type Engine struct{ Settings }

// New returns an engine.
func New(s Settings) *Engine {
	if s.Zone == nil {
		s.Zone = time.UTC
	}
	return &Engine{s}
}

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

// Bounds are the first moment of a span of practice days, and the first after it.
func (e *Engine) Bounds(s Span) (from, to time.Time) {
	return collections.ParseDay(s.Start, e.Zone).UTC(), collections.ParseDay(AddDays(s.End, 1), e.Zone).UTC()
}

// instants are [Engine.Bounds] as they are stored.
func (e *Engine) instants(s Span) (from, to string) {
	start, end := e.Bounds(s)
	return collections.Instant(start), collections.Instant(end)
}
