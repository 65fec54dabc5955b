package billing

import (
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"
)

// Reasons that no one may override: a code is billed as often, and beside those codes, as CPT and CMS allow. Source: docs/decisions/billing.md,
// "Limits of the codes".
const (
	FrequencyLimit      = "frequency_limit"
	ExcludedPair        = "excluded_pair"
	DaysAboveMaximum    = "days_above_maximum"
	MinutesAboveMaximum = "minutes_above_maximum"
)

// exclusionReasons returns the reasons why two codes of one patient and period exclude each other on a
// service date; nil if both may be billed. Source: docs/decisions/billing.md, "Limits of the
// codes".
func exclusionReasons(code, other, serviceDate string) []string {
	if code == other && code == NextTwenty {
		return []string{PossibleDuplicate} // further units of the month
	}
	return exclusionOf(code, other, serviceDate)
}

// compareWithOthers sets the limits and the possible duplicate that the patient's other entries
// cause. With anyOther it compares with every active entry, not only with those that take
// precedence.
func (r *recount) compareWithOthers(anyOther bool) error {
	r.limits, r.isDuplicate = nil, false
	if r.claim.code == Interpretation {
		near, err := interpretationsWithin30Days(r.tx, r.claim.patient, r.claim.id, r.claim.service)
		for _, x := range near {
			r.compareWith(existingEntry{ID: x.ID, Code: Interpretation, Status: x.Status}, anyOther)
		}
		r.limits = slices.Compact(r.limits) // one reason for two neighbors
		return err
	}
	for code := range r.facts.entries {
		for _, x := range r.facts.entries[code] {
			if code != Interpretation && r.facts.sharesPeriod(r.claim, x) {
				r.compareWith(x, anyOther)
			}
		}
	}
	if r.claim.code == NextTwenty && r.isDuplicate && r.unitsWithOthers() > r.MaxUnits99458 {
		r.limits = append(r.limits, FrequencyLimit)
	}
	slices.Sort(r.limits)
	r.limits = slices.Compact(r.limits)
	return nil
}

// unitsWithOthers returns the month's units of the claim's code, with those of other entries that take precedence. What was denied is not paid.
func (r *recount) unitsWithOthers() int {
	units := max(r.claim.units, 1)
	for _, x := range r.facts.entries[r.claim.code] {
		if x.ID != r.claim.id && x.isActive() && x.Status != Denied && x.overlaps(r.claim.period) && r.yieldsTo(x) {
			units += max(x.Units, 1)
		}
	}
	return units
}

// compareWith adds the limits of one other entry of the same period. Beside a denied or resubmitted
// claim a second entry is only a possible duplicate, because the service was not paid; only one of
// the two can be sent.
func (r *recount) compareWith(x existingEntry, anyOther bool) {
	reasons := exclusionReasons(r.claim.code, x.Code, r.claim.service)
	if len(reasons) == 0 || x.ID == r.claim.id || !x.isActive() || !anyOther && !r.yieldsTo(x) {
		return
	}
	if x.Status == Denied || reasons[0] == PossibleDuplicate || x.Status == PendingReview && progressOf(r.claim.status) == 2 {
		r.isDuplicate = true
		return
	}
	r.limits = append(r.limits, reasons...)
}

// yieldsTo reports whether another entry takes precedence: it is further along, or equally far and older.
func (r *recount) yieldsTo(x existingEntry) bool {
	mine, its := progressOf(r.claim.status), progressOf(x.Status)
	return its > mine || its == mine && x.ID < r.claim.id
}

// progressOf returns how far an entry is: pending, reviewed, or sent.
func progressOf(state string) int { return min(max(0, slices.Index(States, state)), 2) }

// sharesPeriod reports whether an entry belongs to the period of another one: the same episode of care for the set-up, else a shared day.
func (f *patientFacts) sharesPeriod(c claimedEntry, x existingEntry) bool {
	if c.code == Setup && x.Code == Setup {
		return f.careEpisode(x.Start) == f.careEpisode(c.service)
	}
	return x.overlaps(c.period)
}

// manualLimits returns the limits against a new entry by entries that a person has reviewed already. Beside a pending one it is only doubtful,
// because one of the two can still be voided; the review decides.
func (e *Engine) manualLimits(app core.App, f *patientFacts, d ManualDraft, period Span) ([]string, error) {
	r := &recount{Engine: e, tx: app, facts: f}
	r.claim = claimedEntry{ // without an id, the oldest
		patient: f.id, payer: f.payerID(), code: d.CPTCode, service: d.ServiceDate, period: period, status: PendingReview, units: e.manualUnits(d),
	}
	if err := r.compareWithOthers(false); err != nil {
		return nil, err
	}
	if rule := baseRule(d.CPTCode, d.ServiceDate); rule.MaxMinutes > 0 && d.Minutes > rule.MaxMinutes {
		r.limits = append(r.limits, MinutesAboveMaximum)
	}
	return r.limits, nil
}

// reasonTexts are the reasons that need more than their code.
var reasonTexts = map[string]string{
	FrequencyLimit:      "Other entries of the patient use up this code for the period. This cannot be overridden.",
	ExcludedPair:        "The code excludes that of another entry of the patient in this period. This cannot be overridden.",
	DaysAboveMaximum:    "There are more days with data than the code is for.",
	MinutesAboveMaximum: "There are more minutes than the code is for.",
	PossibleDuplicate:   "Another entry covers the same service: give an override_reason.",
}

// ReasonDetail is one reason of a refusal.
type ReasonDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// describeReasons returns reasons with their texts.
func describeReasons(reasons []string) []ReasonDetail {
	list := make([]ReasonDetail, len(reasons))
	for i, code := range reasons {
		text := reasonTexts[code]
		if text == "" {
			text = "The facts do not support the entry: " + strings.ReplaceAll(code, "_", " ") + "."
		}
		list[i] = ReasonDetail{code, text}
	}
	return list
}
