package billing

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/vigilhealth/vigil/collections"
)

// The rules by which time counts toward 99457, 99458 and 99470. Source: docs/decisions/billing.md, "The twenty-minute rule".
const (
	InteractiveOnly    = "interactive"     // the API contract's: live contact only
	WithCareManagement = "care_management" // CMS since 2021: care management counts in a month with live contact
)

// careManagementSince is when CMS began to count care management. Source: 86 FR 5020 (January 19, 2021).
const careManagementSince = "2021-01-01"

// ruleNameOf returns the rule for a month of service: the payer's, or without one the practice's. Neither counts care management before CMS did.
func (e *Engine) ruleNameOf(month Span, payers string) string {
	rule, since := payers, careManagementSince
	if payers == "" {
		rule, since = e.TimeRule, cmp.Or(e.TimeRuleFrom, careManagementSince)
	}
	if rule == WithCareManagement && month.Start >= since {
		return WithCareManagement
	}
	return InteractiveOnly
}

// timeRule returns the storage filter for time that may count by a rule; [Engine.splitByMonth] decides what counts in its month.
func (e *Engine) timeRule(rule string) collections.TimeRule {
	r := collections.TimeRule{Care: rule == WithCareManagement}
	if e.LiveContactFrom != "" {
		r.LiveFrom = collections.FormatInstant(collections.ParseDay(e.LiveContactFrom, e.Zone))
	}
	return r
}

// ruleName returns the name of the rule that a filter is for.
func ruleName(rule collections.TimeRule) string {
	if rule.Care {
		return WithCareManagement
	}
	return InteractiveOnly
}

// timeRuleOf is timeRule for a month: by the practice's rule, and for the patients of a payer with its own rule, by that one.
func (e *Engine) timeRuleOf(month Span) collections.TimeRule {
	return e.byPayer(e.timeRule(e.ruleNameOf(month, "")), month)
}

// byPayer lets the payers' own rules come before a rule of the practice, for a month in which they may differ.
func (e *Engine) byPayer(rule collections.TimeRule, month Span) collections.TimeRule {
	rule.ByPayer = month.End >= careManagementSince
	return rule
}

// IsLiveContact reports whether time is live contact, which counts: it has a live contact method, or is an escalation's (to be attested), or is
// from before contact methods were required.
func (e *Engine) IsLiveContact(entry *collections.TimeEntry) bool {
	switch {
	case entry.Category() != collections.Interactive || entry.Contact() == collections.ByMessage:
		return false
	case entry.Contact() != "" || entry.Source() == collections.TimeEscalation:
		return true
	}
	from := e.timeRule(InteractiveOnly).LiveFrom
	return from == "" || collections.FormatInstant(entry.StartedAt()) < from
}

// maxLoggedTime exceeds any time entry: time that began earlier does not reach into a month.
const maxLoggedTime = 24 * time.Hour

// monthWithLead returns the bounds of a month and the time that may reach into it, in stored form.
func (e *Engine) monthWithLead(month Span) (from, to string) {
	start, end := e.TimeRange(month)
	return collections.FormatInstant(start.Add(-maxLoggedTime)), collections.FormatInstant(end)
}

// ruleOfEvidence returns the rule under which an entry was made: the current one of its payer for a manual entry before
// review, all interactive time for one from before contact methods were required.
func (e *Engine) ruleOfEvidence(evidence string, month Span, payers string) collections.TimeRule {
	var stored TimeEvidence
	if json.Unmarshal([]byte(evidence), &stored) != nil || len(stored.TimeEntries) == 0 {
		return e.timeRule(e.ruleNameOf(month, payers))
	}
	if stored.Rule == "" {
		return collections.TimeRule{}
	}
	return e.timeRule(stored.Rule)
}
