// Package billing makes billing entries from the CPT rules, which are data with dates: it counts the days and minutes that support a code, moves
// claims through their states, posts payments, and reports what a code still needs. Rules are pure functions of facts and a time; the functions
// that store decide nothing and store once, also when two run at the same time.
//
// It counts days from reading_days and minutes from time entries, never from observations, and computes in whole cents. It does not handle
// requests and sends nothing. The rules are written in docs/decisions/billing.md.
package billing

import (
	"time"

	"github.com/vigilhealth/vigil/internal/claims"
)

// Settings are the practice's choices.
type Settings struct {
	Zone                  *time.Location // months and service dates are in this zone
	Enable2026Codes       bool           // 99445 and 99470
	MaxUnits99458         int
	RequireConsent        bool
	RequireOrder          bool // an entry without an order is refused; otherwise it gets a warning
	RequireSecondReviewer bool // the creator of a manual entry cannot review it
	EscalationTimeCap     time.Duration
	Claims                claims.Loader // the practice's data on a claim
	Locality              string        // of the Medicare fee schedule; "" for national amounts
	LiveContactFrom       string        // practice day from which interactive time needs a live contact method; "" for never
	TimeRule              string        // [InteractiveOnly], or [WithCareManagement]; "" until the practice decides, like the first
	TimeRuleFrom          string        // first day of the service months under the rule; "" for CMS's date
	ReadingsPending       func() bool   // batch work pauses while it returns true; nil for never
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
