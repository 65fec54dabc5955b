package billing

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/vigilhealth/vigil/collections"
)

// The rules by which time counts towards 99457, 99458 and 99470. Source: docs/decisions/billing.md, "The twenty-minute rule".
const (
	InteractiveOnly    = "interactive"     // the contract's: live contact alone
	WithCareManagement = "care_management" // CMS since 2021: in a month with live contact, care management, too
)

// careManagementSince is the day from which CMS counts care management. Source: 86 FR 5020 (January 19, 2021).
const careManagementSince = "2021-01-01"

// ruleNameOf is the rule for a month of service.
func (e *Engine) ruleNameOf(month Span) string {
	if e.TimeRule == WithCareManagement && month.Start >= cmp.Or(e.TimeRuleFrom, careManagementSince) {
		return WithCareManagement
	}
	return InteractiveOnly
}

// timeRule is how storage is asked for time that may count by a rule. What counts in its month, [Engine.splitByMonth] says.
func (e *Engine) timeRule(rule string) collections.TimeRule {
	r := collections.TimeRule{Care: rule == WithCareManagement}
	if e.LiveContactFrom != "" {
		r.LiveFrom = collections.Instant(collections.ParseDay(e.LiveContactFrom, e.Zone))
	}
	return r
}

// timeRuleOf is counts for the month.
func (e *Engine) timeRuleOf(month Span) collections.TimeRule { return e.timeRule(e.ruleNameOf(month)) }

// IsLiveContact reports whether time is live contact, which counts: it says how, or it is an escalation's, which somebody attests, or it is from before a way
// of contact was asked for.
func (e *Engine) IsLiveContact(entry *collections.TimeEntry) bool {
	switch {
	case entry.Category() != collections.Interactive || entry.Contact() == collections.ByMessage:
		return false
	case entry.Contact() != "" || entry.Source() == collections.TimeEscalation:
		return true
	}
	from := e.timeRule(InteractiveOnly).LiveFrom
	return from == "" || collections.Instant(entry.StartedAt()) < from
}

// maxLoggedTime is more than any time entry lasts: nothing that began earlier reaches into a month.
const maxLoggedTime = 24 * time.Hour

// monthWithLead is a month with what may reach into it, as it is stored.
func (e *Engine) monthWithLead(month Span) (from, to string) {
	start, end := e.Bounds(month)
	return collections.Instant(start.Add(-maxLoggedTime)), collections.Instant(end)
}

// ruleOfEvidence is the rule that an entry of a month was made under, by its evidence: today's for one made by hand, all interactive time for one from before
// ways of contact were asked for.
func (e *Engine) ruleOfEvidence(evidence string, month Span) collections.TimeRule {
	var stored TimeEvidence
	if json.Unmarshal([]byte(evidence), &stored) != nil || len(stored.TimeEntries) == 0 {
		return e.timeRuleOf(month)
	}
	if stored.Rule == "" {
		return collections.TimeRule{}
	}
	return e.timeRule(stored.Rule)
}
