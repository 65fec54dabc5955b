package billing

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// claimedEntry holds what an entry bills: code, period, minutes and units.
type claimedEntry struct {
	id, patient, code, service, source, provider string
	payer                                        string // record id; "" for none
	status                                       string
	period                                       Span
	minutes, units                               int
	rule                                         collections.TimeRule // by which its time counts
	hasDiagnoses                                 bool                 // it has diagnoses of its own
}

// neededMinutes returns how many minutes of the month an entry requires.
func (e claimedEntry) neededMinutes(rule Rule) int {
	unit := cmp.Or(rule.Block, rule.MinMinutes)
	return max(e.minutes, unit*max(e.units, 1)) + rule.MinMinutes - unit
}

// countedFacts holds the days and minutes that the facts support.
type countedFacts struct {
	days []string // with device data, under consent
	// isMonitored is for a set-up (99453): a period of its episode of care has enough days with
	// data.
	isMonitored bool
	firstDay    string // first billed day: the first with data, or of the first minutes; "" for none
	// Minutes under consent, each moment counted once; minutesWithOverlap includes those that count elsewhere; uncountedMinutes are the month's
	// minutes without live contact.
	minutes, minutesWithOverlap, uncountedMinutes int
}

// blockingReasons returns all reasons against an entry.
func (e *Engine) blockingReasons(f *patientFacts, x claimedEntry, c countedFacts) (reasons []string) {
	rule := baseRule(x.code, x.service)
	with := *f
	if x.hasDiagnoses {
		with.diagnoses = []string{x.code} // only its existence matters here
	}
	add := func(when bool, reason string) {
		if when {
			reasons = append(reasons, reason)
		}
	}
	switch {
	case rule.Period == ThirtyDays:
		supplied := len(slices.DeleteFunc(slices.Clone(c.days), func(day string) bool { return day > x.service })) // what comes later was not furnished yet
		add(len(c.days) == 0, NoDeviceData)
		isTaken := x.code != ShortSupply || f.takesShortSupply(x.payer, x.service) || slices.Contains(sentStates, x.status) // what was sent is the payer's to decide
		add(0 < len(c.days) && len(c.days) <= rule.MaxDays && (supplied < rule.MinDays || !isTaken), DaysBelowMinimum)
		add(len(c.days) > rule.MaxDays, DaysAboveMaximum)
	case x.code == Setup:
		add(len(c.days) == 0, NoDeviceData)
		add(len(c.days) > 0 && !c.isMonitored, DaysBelowMinimum)
	case rule.Category != "":
		reasons = append(reasons, timeBlockingReasons(rule, x, c)...)
		add(rule.MaxMinutes > 0 && max(x.minutes, c.minutes) > rule.MaxMinutes, MinutesAboveMaximum)
	}
	isSent := slices.Contains(sentStates, x.status) // to another payer too: that is the payer's to decide
	add(x.code == NextTwenty && !f.hasPrimaryOf(rule.After, x.period, x.payer) &&
		!(isSent && slices.ContainsFunc(rule.After, func(code string) bool { return f.hasActiveEntry(code, x.period) })), MissingPrimary)
	_, isTaught := f.setupOf(x.service)
	add(x.code == Setup && !isTaught, MissingSetup)
	reasons = append(reasons, e.missingItems(&with, x.service)...)
	add(x.provider == "", MissingProvider)
	return reasons
}

// timeBlockingReasons compares the claimed minutes with the counted ones. 99458 requires the minutes of 99457 as well.
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

// neededMinutes returns how many minutes of the month a code requires for a number of units on a service date; 0 for a code without time.
func neededMinutes(code, serviceDate string, units int) int {
	rule := baseRule(code, serviceDate)
	if rule.Block > 0 {
		return rule.MinMinutes + (max(units, 1)-1)*rule.Block
	}
	return rule.MinMinutes
}

// countFacts counts days and minutes for entries, from reading days and time entries only.
func (e *Engine) countFacts(app core.App, patients map[string]*patientFacts, list []claimedEntry) (found []countedFacts, err error) {
	found = make([]countedFacts, len(list))
	var windows []supplyPeriod
	var places, setups []int // indexes into list; places by window
	months := map[timeMonth][]int{}
	for i, x := range list {
		switch rule := baseRule(x.code, x.service); {
		case rule.Period == ThirtyDays:
			windows, places = append(windows, supplyPeriod{Patient: x.patient, Start: x.period.Start, End: x.period.End}), append(places, i)
		case x.code == Setup:
			setups = append(setups, i)
		case rule.Category != "":
			month := timeMonth{rule.Category, monthOf(x.period.Start), x.rule}
			months[month] = append(months[month], i)
		}
	}
	if err := e.countMonitoring(app, patients, list, found, setups); err != nil {
		return nil, err
	}
	if err := e.loadDataDays(app, patients, windows); err != nil {
		return nil, err
	}
	for k, i := range places {
		if found[i].days = windows[k].days; len(found[i].days) > 0 {
			found[i].firstDay = found[i].days[0]
		}
	}
	for month, of := range months {
		if err := e.countTime(app, patients, list, found, month, of); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// firstDayAfter returns the day on which a month's counted time first exceeds a number of minutes; "" if it does not.
func (e *Engine) firstDayAfter(counted []LoggedTime, minutes int) string {
	sum := time.Duration(0)
	for _, s := range counted {
		if sum += s.counted; sum > time.Duration(minutes)*time.Minute {
			return e.Day(s.StartedAt)
		}
	}
	return ""
}

// timeMonth is the time of a month that counts for a category by a rule.
type timeMonth struct {
	category string
	month    Span
	rule     collections.TimeRule
}

// countTime counts the time of a month for the entries of a list at the given indexes.
func (e *Engine) countTime(app core.App, patients map[string]*patientFacts, list []claimedEntry, found []countedFacts, m timeMonth, of []int) error {
	if m.category != collections.Interactive {
		for _, i := range of {
			if f := patients[list[i].patient]; f != nil {
				if err := e.countInterpretation(app, f, m.month, m.rule, &found[i]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var ids []string
	for _, i := range of {
		ids = append(ids, list[i].patient)
	}
	slices.Sort(ids)
	times, err := e.loggedTimeByRule(app, slices.Compact(ids), m.month, m.rule)
	if err != nil {
		return err
	}
	for _, i := range of {
		if f := patients[list[i].patient]; f != nil {
			counting := e.dropUncountedTime(f, times[f.id], m.month)
			setCounted(counting)
			found[i].minutes = sumCounted(counting) / 60
			found[i].minutesWithOverlap = found[i].minutes
			found[i].firstDay = e.firstDayAfter(counting, baseRule(list[i].code, list[i].service).minutesBefore())
		}
	}
	return nil
}

// Reasons against reviewing, submitting or resubmitting an entry, besides those of [Engine.missingItems]. Source: docs/decisions/billing.md,
// "Recount before submission".
const (
	NoDeviceData        = "no_device_data"
	DaysBelowMinimum    = "days_below_minimum"
	MinutesBelowMinimum = "minutes_below_minimum"
	NotInteractive      = "not_interactive" // there are minutes, but without live contact
	MissingProvider     = "missing_provider"
	MissingOrder        = "missing_order" // a warning, unless the practice requires an order
)

// Items that may be missing. Source: docs/decisions/billing.md, "Eligibility".
const (
	NotActive        = "not_active"
	MissingConsent   = "missing_consent"
	MissingDiagnosis = "missing_diagnosis"
	MissingSetup     = "missing_setup"
	MissingNote      = "missing_note"
)

// The warnings of entries.
const (
	AttestInteraction = "attest_interaction"
	PossibleDuplicate = "possible_duplicate"
	BeforeEnrollment  = "before_enrolment"
	MissingPrimary    = "missing_primary_code"
	Overlaps99457     = "overlaps_99457"
	UnknownICD10      = "unknown_icd10"
	EvidenceChanged   = "evidence_changed"

	PaidBeforeService = "paid_before_service" // not stored: by the dates of the last payment and the service
)

// recountedWarnings are the warnings that each recount determines again.
var recountedWarnings = []string{
	NotActive, MissingConsent, MissingDiagnosis, MissingSetup, MissingNote, MissingPrimary, MissingProvider, NoDeviceData, DaysBelowMinimum,
	DaysAboveMaximum, MinutesBelowMinimum, MinutesAboveMaximum, NotInteractive, OverlapTime, PossibleDuplicate, MissingOrder, CompetingService,
}

// keptWarnings returns the warnings that a recount does not determine.
func keptWarnings(entry *collections.BillingEntry) []string {
	return slices.DeleteFunc(entry.Warnings(), func(w string) bool { return slices.Contains(recountedWarnings, w) })
}

// overrideFor returns the reason, given when the warning existed, for which an entry may be billed despite it.
func overrideFor(entry *collections.BillingEntry, reason string) string {
	if !slices.Contains(entry.Warnings(), reason) {
		return ""
	}
	return entry.OverrideReason()
}

// reasonsFault returns a fault with every reason; nil if there is none. Another entry of the same service, without other reasons, has its own code.
func reasonsFault(reasons []string) error {
	switch {
	case len(reasons) == 0:
		return nil
	case !slices.ContainsFunc(reasons, func(r string) bool {
		return !slices.Contains([]string{PossibleDuplicate, FrequencyLimit, ExcludedPair}, r)
	}):
		return withReasons(fault.State("duplicate_entry", reasonTexts[reasons[len(reasons)-1]]), reasons)
	case slices.Equal(reasons, []string{AttestInteraction}):
		return withReasons(fault.State("invalid_state", "Confirm the minutes of interaction with attested."), reasons)
	}
	return unsupportedFault(reasons)
}

func unsupportedFault(reasons []string) *fault.Error {
	return withReasons(fault.State("invalid_state", "The facts do not support this entry: "+strings.Join(reasons, ", ")+"."), reasons)
}

// withReasons lists the reasons of a refusal, as codes and with their texts.
func withReasons(refused *fault.Error, reasons []string) *fault.Error {
	return refused.With("warnings", reasons).With("errors", describeReasons(reasons))
}

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
func (d documentation) hasCompetingService(period Span) bool {
	return slices.ContainsFunc(d.competingServices, func(s collections.CompetingSpan) bool { return Span{s.From, s.Until}.OverlapsOpen(period) })
}
