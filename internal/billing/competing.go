package billing

import (
	"slices"

	"github.com/vigilhealth/vigil/collections"
)

// CompetingService stands against an entry while another practice, or another program, is known to bill remote monitoring for the patient in its
// period. Source: docs/decisions/billing.md, "Competing services".
const CompetingService = "competing_service"

// competes reports whether a competing service is on record for a day of a period.
func (p papers) competes(period Span) bool {
	return slices.ContainsFunc(p.competing, func(s collections.CompetingSpan) bool { return Span{s.From, s.Until}.Meets(period) })
}

// Meets reports whether a span, which goes on where it has no end, shares a day with a period.
func (s Span) Meets(p Span) bool { return s.Start <= p.End && (s.End == "" || s.End >= p.Start) }
