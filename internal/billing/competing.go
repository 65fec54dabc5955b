package billing

import (
	"slices"

	"github.com/vigilhealth/vigil/collections"
)

// CompetingService stands against an entry while another practice, or another program, is known to bill remote monitoring for the patient in its
// period. Source: docs/decisions/billing.md, "Competing services".
const CompetingService = "competing_service"

// hasCompetingService reports whether a competing service is on record for a day of a period.
func (p documentation) hasCompetingService(period Span) bool {
	return slices.ContainsFunc(p.competingServices, func(s collections.CompetingSpan) bool { return Span{s.From, s.Until}.OverlapsOpen(period) })
}

// OverlapsOpen reports whether a span, which goes on where it has no end, shares a day with a period.
func (s Span) OverlapsOpen(p Span) bool { return s.Start <= p.End && (s.End == "" || s.End >= p.Start) }
