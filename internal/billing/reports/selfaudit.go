package reports

import (
	"fmt"
	"slices"
	"time"
)

// Pattern is the name of a pattern.
type Pattern string

// The patterns. Source: docs/decisions/claims.md, "Self-audit".
const (
	NoEstablishedVisit      Pattern = "no_established_visit"
	SupplyWithoutManagement Pattern = "supply_without_management"
	EnrollmentSpike         Pattern = "enrolment_spike"
	SeveralDevices          Pattern = "several_devices"
	SameMinutes             Pattern = "same_minutes"
	LateEntry               Pattern = "late_entry"
	ImpossibleDay           Pattern = "impossible_day"
	ManualDays              Pattern = "typed_days"
	CompetingService        Pattern = "competing_service"
)

// Severity is the consequence of a pattern.
type Severity string

// The severities.
const (
	Critical Severity = "critical" // unless explained, payments would have to be refunded
	Warning  Severity = "warning"  // a payer would examine it
)

// Finding is a pattern with the entries and time entries that show it.
type Finding struct {
	Pattern     Pattern  `json:"pattern"`
	Severity    Severity `json:"severity"`
	Count       int      `json:"count"` // of patients, time entries, or days of a user
	Explanation string   `json:"explanation"`
	EntryIDs    []string `json:"entry_ids"`
	TimeIDs     []int64  `json:"time_entry_ids"`
}

// The thresholds. Source: docs/decisions/claims.md, "Self-audit".
const (
	periodsInARow  = 3
	minEnrolled    = 10
	monthsBefore   = 3
	equalMinutes   = 5
	lateAfter      = 72 * time.Hour
	longestDay     = 960 * time.Minute
	longestStretch = 24 * time.Hour // how far back time that reaches into a day may begin
)

// patterns are searched in this order.
var patterns = []struct {
	pattern  Pattern
	severity Severity
	text     string // of the count
	find     func(AuditFacts, *patternHits)
}{
	{NoEstablishedVisit, Critical, "Patients billed without a visit on record from before their first billed date: %d.", noEstablishedVisit},
	{SupplyWithoutManagement, Warning, "Patients with three device supply periods in a row and no treatment management: %d.", supplyWithoutManagement},
	{EnrollmentSpike, Warning, "Patients billed for the first time, at least three times the mean of the three months before: %d.", enrollmentSpike},
	{SeveralDevices, Critical, "Patients with more than one device supply code for overlapping periods: %d.", severalDevices},
	{SameMinutes, Warning, "Time entries with the same minutes as at least four others of the same person: %d.", sameMinutes},
	{LateEntry, Warning, "Time entries recorded more than 72 hours after the time they document: %d.", lateEntries},
	{ImpossibleDay, Critical, "Days on which one person recorded more than 960 minutes: %d.", impossibleDays},
	{ManualDays, Warning, "Patients with more than half of their days with data entered manually: %d.", manualDays},
	{CompetingService, Critical, "Patients billed while another practice or program is on record as billing remote monitoring: %d.", competingServices},
}

// patternHits collects the entries and time entries of a pattern, each once.
type patternHits struct {
	count   int
	entries map[string]bool
	times   map[int64]bool
}

func (f *patternHits) addLines(lines ...AuditedLine) {
	for _, line := range lines {
		f.entries[line.ID] = true
	}
}

func (f *patternHits) addTime(times ...LoggedTime) {
	for _, s := range times {
		if f.times[s.ID] = true; s.Entry != "" {
			f.entries[s.Entry] = true
		}
	}
}

// FindPatterns returns a finding for every pattern that occurs.
func FindPatterns(facts AuditFacts) []Finding {
	list := []Finding{}
	for _, p := range patterns {
		got := &patternHits{entries: map[string]bool{}, times: map[int64]bool{}}
		if p.find(facts, got); got.count > 0 {
			list = append(list, Finding{p.pattern, p.severity, got.count, fmt.Sprintf(p.text, got.count), sortedKeys(got.entries), sortedKeys(got.times)})
		}
	}
	return list
}

func sortedKeys[K interface{ ~string | ~int64 }](set map[K]bool) []K {
	list := make([]K, 0, len(set))
	for key := range set {
		list = append(list, key)
	}
	slices.Sort(list)
	return list
}
