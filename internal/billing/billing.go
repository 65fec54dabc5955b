// Package billing knows money: the CPT rules as dated data, which days and minutes make a billing entry, the states of a claim, what stands
// behind each entry, and what is still missing. Everything that decides is plain: facts and a moment in, drafts out; what decides nothing only
// stores, once, whatever runs beside it.
//
// It counts days from reading_days and minutes from time entries and never looks through observations; it computes in whole cents. It refuses
// to know requests, and it never sends anything anywhere.
package billing

import (
	"time"

	"github.com/vigilhealth/vigil/internal/claims"
)

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
