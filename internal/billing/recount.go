package billing

import (
	"cmp"
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// The reasons for which an entry is not reviewed, submitted or sent again, beside those of [Engine.missing].
// Source: docs/decisions/billing.md, "Recount before submission".
const (
	NoDeviceData        = "no_device_data"
	DaysBelowMinimum    = "days_below_minimum"
	MinutesBelowMinimum = "minutes_below_minimum"
	NotInteractive      = "not_interactive" // minutes there are, without a live way of contact
	MissingProvider     = "missing_provider"
	MissingOrder        = "missing_order" // a warning, unless the practice asks for one
)

// claimedEntry is what an entry claims.
type claimedEntry struct {
	id, patient, code, service, source, provider string
	period                                       Span
	minutes, units                               int
	rule                                         collections.TimeRule // by which its time counts
	hasDiagnoses                                 bool                 // it names diagnoses itself
}

// countedFacts is what the facts come to for it.
type countedFacts struct {
	days []string // with data of a device, under consent
	// Minutes under consent: each moment once; with those that count elsewhere already; and those of the month without live contact.
	minutes, minutesWithOverlap, uncountedMinutes int
}

// consentedDays says which days of a period count: where consent was in force on some of them, only those. Where there was none at all, the missing
// consent is said by itself, and what else the period came to is still told.
// Source: docs/decisions/billing.md, "Consent in mid-period".
func (e *Engine) consentedDays(f *patientFacts, period Span) func(day string) bool {
	during := func(s Span) bool { return s.Start <= period.End && (s.End == "" || s.End >= period.Start) }
	if !e.RequireConsent || !slices.ContainsFunc(f.consents, during) {
		return func(string) bool { return true }
	}
	return func(day string) bool {
		return slices.ContainsFunc(f.consents, func(s Span) bool { return s.contains(day) })
	}
}

// contains reports whether a day lies in a span; one without an end goes on.
func (s Span) contains(day string) bool { return s.Start <= day && (s.End == "" || day <= s.End) }

// hasConsentThroughout reports whether one consent covers a whole period, as a rule.
func (f *patientFacts) hasConsentThroughout(period Span) bool {
	return len(f.consents) == 1 && f.consents[0].Start <= period.Start && f.consents[0].End == ""
}

// dropUnconsentedTime leaves out time of days without consent.
func (e *Engine) dropUnconsentedTime(f *patientFacts, stretches []LoggedTime, month Span) []LoggedTime {
	if f.hasConsentThroughout(month) {
		return stretches
	}
	counts := e.consentedDays(f, month)
	return slices.DeleteFunc(slices.Clone(stretches), func(s LoggedTime) bool { return !counts(e.Day(s.StartedAt)) })
}

// ruleFor is what a code asks for on a day, in force or not.
func (e *Engine) ruleFor(code, service string) Rule {
	if rule, ok := e.Rule(code, service); ok {
		return rule
	}
	return baseRule(code)
}

// countFacts counts days and minutes for entries of some patients, from the days and the time alone.
func (e *Engine) countFacts(app core.App, patients map[string]*patientFacts, list []claimedEntry) ([]countedFacts, error) {
	found := make([]countedFacts, len(list))
	var windows []supplyPeriod
	var places []int // in the list, of each window
	months := map[timeMonth][]int{}
	for i, x := range list {
		switch rule := e.ruleFor(x.code, x.service); {
		case rule.Period == ThirtyDays:
			windows, places = append(windows, supplyPeriod{Patient: x.patient, Start: x.period.Start, End: x.period.End}), append(places, i)
		case rule.Category != "":
			month := timeMonth{rule.Category, monthOf(x.period.Start), x.rule}
			months[month] = append(months[month], i)
		}
	}
	if err := e.loadDataDays(app, patients, windows); err != nil {
		return nil, err
	}
	for k, i := range places {
		found[i].days = windows[k].days
	}
	for month, of := range months {
		if err := e.countTime(app, patients, list, found, month, of); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// timeMonth is the time of a month that counts for a category by a rule.
type timeMonth struct {
	category string
	month    Span
	rule     collections.TimeRule
}

// countTime counts the time of a month for those entries of a list that are named by their places.
func (e *Engine) countTime(app core.App, patients map[string]*patientFacts, list []claimedEntry, found []countedFacts, m timeMonth, of []int) error {
	if m.category != collections.Interactive {
		for _, i := range of {
			if err := e.countInterpretation(app, list[i].patient, m.month, m.rule, &found[i]); err != nil {
				return err
			}
		}
		return nil
	}
	var ids []string
	for _, i := range of {
		ids = append(ids, list[i].patient)
	}
	slices.Sort(ids)
	time, err := e.loggedTimeByRule(app, slices.Compact(ids), m.month, m.rule)
	if err != nil {
		return err
	}
	for _, i := range of {
		if f := patients[list[i].patient]; f != nil {
			found[i].minutes = CountedSeconds(e.dropUnconsentedTime(f, time[f.id], m.month)) / 60
			found[i].minutesWithOverlap = found[i].minutes
		}
	}
	return nil
}

// blockingReasons are all reasons that stand against an entry, by the facts and what they come to.
func (e *Engine) blockingReasons(f *patientFacts, x claimedEntry, c countedFacts) (reasons []string) {
	rule := e.ruleFor(x.code, x.service)
	with := *f
	if x.hasDiagnoses {
		with.diagnoses = []string{x.code} // that there is one is all that is asked
	}
	add := func(when bool, reason string) {
		if when {
			reasons = append(reasons, reason)
		}
	}
	switch {
	case rule.Period == ThirtyDays:
		add(len(c.days) == 0, NoDeviceData)
		add(len(c.days) < rule.MinDays, DaysBelowMinimum)
	case rule.Category != "":
		reasons = append(reasons, timeBlockingReasons(rule, x, c)...)
	}
	add(x.code == NextTwenty && !f.hasActiveEntry(rule.After, x.period), MissingPrimary)
	add(x.code == Setup && f.setupDay == "", MissingSetup)
	reasons = append(reasons, e.missingItems(&with, x.service)...)
	add(x.provider == "", MissingProvider)
	return reasons
}

// timeBlockingReasons holds the minutes that an entry claims against those on record: 99458 stands on the minutes of 99457.
func timeBlockingReasons(rule Rule, x claimedEntry, c countedFacts) []string {
	unit, needed := cmp.Or(rule.Block, rule.MinMinutes), x.neededMinutes(rule)
	switch {
	case x.minutes < unit:
		return []string{MinutesBelowMinimum}
	case c.minutes >= needed:
		return nil
	case c.minutesWithOverlap >= needed:
		return []string{OverlapTime}
	case rule.Category == collections.Interactive && c.minutesWithOverlap+c.uncountedMinutes >= needed:
		return []string{MinutesBelowMinimum, NotInteractive}
	}
	return []string{MinutesBelowMinimum}
}

// neededMinutes is how many minutes of the month an entry stands on.
func (x claimedEntry) neededMinutes(rule Rule) int {
	unit := cmp.Or(rule.Block, rule.MinMinutes)
	return max(x.minutes, unit*max(x.units, 1)) + rule.MinMinutes - unit
}

// hasActiveEntry reports whether an entry of a code that holds overlaps a period.
func (f *patientFacts) hasActiveEntry(code string, period Span) bool {
	return slices.ContainsFunc(f.entries[code], func(x existingEntry) bool { return x.isActive() && x.overlaps(period) })
}

func (x existingEntry) overlaps(p Span) bool { return x.Start <= p.End && x.End >= p.Start }

// isActive reports whether an entry is billed and not being undone.
func (x existingEntry) isActive() bool {
	return !slices.Contains([]string{Voided, VoidRequested, RefundDue, Refunded}, x.Status)
}

// planMonthTime plans the time of a month that counts. What the month would have come to with the time of days without consent is left out for
// that reason; the blocks are those of both.
func (e *Engine) planMonthTime(f *patientFacts, all []LoggedTime, month Span, over, lenient bool) (due []entryDraft, skipped []SkippedEntry, blocks []Block) {
	counting := e.dropUnconsentedTime(f, all, month)
	blocks = e.PlanMonth(counting, over)
	due, skipped = e.draftTimeEntries(f, blocks, month, lenient)
	if len(counting) == len(all) {
		return due, skipped, blocks
	}
	earned := len(blocks)
	for _, b := range e.PlanMonth(all, over) {
		rule, _ := e.Rule(b.Code, b.ServiceDate)
		known := slices.ContainsFunc(blocks[:earned], func(x Block) bool { return x.Code == b.Code || x.Code == rule.Instead })
		if !known && !f.hasActiveEntry(b.Code, month) && (rule.Instead == "" || !f.hasActiveEntry(rule.Instead, month)) {
			skipped, blocks = append(skipped, SkippedEntry{f.id, b.Code, MissingConsent}), append(blocks, b)
		}
	}
	return due, skipped, blocks
}
