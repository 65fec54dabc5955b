package billing

import (
	"maps"
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// documentation is what supports an entry besides its patient's facts and counts: notes, orders and competing services.
type documentation struct {
	hasUndocumentedTime bool // it bills time without a note
	competingServices   []collections.CompetingSpan
	firstOrder          string // the first day on which monitoring was ordered; "" for never
}

// loadDocumentation loads the documentation of entries, in their order, with a fixed number of queries.
func loadDocumentation(app core.App, entries []*collections.BillingEntry) ([]documentation, error) {
	ids, people := make([]string, len(entries)), map[string]bool{}
	for i, entry := range entries {
		ids[i], people[entry.PatientID()] = entry.Id, true
	}
	patients := slices.Sorted(maps.Keys(people))
	unnoted, err := collections.EntriesWithoutNotes(app, patients, ids)
	if err != nil {
		return nil, err
	}
	known, err := collections.CompetingServices(app, patients)
	if err != nil {
		return nil, err
	}
	first, err := collections.FirstOrders(app, patients)
	if err != nil {
		return nil, err
	}
	competing, ordered := map[string][]collections.CompetingSpan{}, map[string]string{}
	for _, s := range known {
		competing[s.Patient] = append(competing[s.Patient], s)
	}
	for _, o := range first {
		if o.Kind == collections.OrderOfMonitoring {
			ordered[o.Patient] = o.Dated
		}
	}
	list := make([]documentation, len(entries))
	for i, entry := range entries {
		list[i] = documentation{unnoted[entry.Id], competing[entry.PatientID()], ordered[entry.PatientID()]}
	}
	return list, nil
}

// CompetingService blocks an entry if another practice or program bills remote monitoring for the patient in its period. Source:
// docs/decisions/billing.md, "Competing services".
const CompetingService = "competing_service"

// hasCompetingService reports whether a competing service is on record for a day of a period.
func (p documentation) hasCompetingService(period Span) bool {
	return slices.ContainsFunc(p.competingServices, func(s collections.CompetingSpan) bool { return Span{s.From, s.Until}.OverlapsOpen(period) })
}
