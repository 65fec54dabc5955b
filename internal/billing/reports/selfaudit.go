package reports

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
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

// PatternMatch is a pattern with the entries and time entries that show it.
type PatternMatch struct {
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
	{NoEstablishedVisit, Critical, "Patients billed without a visit on record from before the first day that was billed: %d.", noEstablishedVisit},
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

func (h *patternHits) addLines(lines ...AuditedLine) {
	for _, line := range lines {
		h.entries[line.ID] = true
	}
}

func (h *patternHits) addTime(times ...LoggedTime) {
	for _, s := range times {
		if h.times[s.ID] = true; s.Entry != "" {
			h.entries[s.Entry] = true
		}
	}
}

// FindPatterns returns a finding for every pattern that occurs.
func FindPatterns(facts AuditFacts) []PatternMatch {
	list := []PatternMatch{}
	for _, p := range patterns {
		got := &patternHits{entries: map[string]bool{}, times: map[int64]bool{}}
		if p.find(facts, got); got.count > 0 {
			list = append(list, PatternMatch{p.pattern, p.severity, got.count, fmt.Sprintf(p.text, got.count), sortedKeys(got.entries), sortedKeys(got.times)})
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

var (
	supplies    = []string{billing.DeviceSupply, billing.ShortSupply}
	managements = []string{billing.FirstTwenty, billing.NextTwenty, billing.FirstTen, billing.Interpretation}
)

func contains(span billing.Span, day string) bool { return span.Start <= day && day <= span.End }

// ofMonth returns a patient's lines with a service date in the month.
func (f AuditFacts) ofMonth(patient string) (list []AuditedLine) {
	for _, line := range f.Lines[patient] {
		if contains(f.Month, line.Service) {
			list = append(list, line)
		}
	}
	return list
}

// withCodes returns the lines with one of some codes, by start of their periods. A line without a period gets its service date.
func withCodes(lines []AuditedLine, codes []string) (list []AuditedLine) {
	for _, line := range lines {
		if slices.Contains(codes, line.Code) {
			line.Start, line.End = cmp.Or(line.Start, line.Service), cmp.Or(line.End, line.Service)
			list = append(list, line)
		}
	}
	slices.SortFunc(list, func(a, b AuditedLine) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) })
	return list
}

// noEstablishedVisit: a visit on the first day with billed data or time itself does not count; it must be earlier. A date of service is at the end of a
// period.
func noEstablishedVisit(f AuditFacts, out *patternHits) {
	for patient := range f.Lines {
		if visit := f.FirstVisit[patient]; visit == "" || visit >= f.FirstFact[patient] {
			out.count++
			out.addLines(f.ofMonth(patient)...)
		}
	}
}

// supplyWithoutManagement: two periods with room for a whole period between them are not consecutive. Two that overlap are one period here, and
// a pattern of their own.
func supplyWithoutManagement(f AuditFacts, out *patternHits) {
	for _, lines := range f.Lines {
		managed, run, isFound := withCodes(lines, managements), [][]AuditedLine{}, false
		for _, line := range withCodes(lines, supplies) {
			last := len(run) - 1
			switch {
			case isManaged(line, managed):
				run = nil
			case last >= 0 && line.Start <= run[last][0].End:
				run[last] = append(run[last], line)
			case last >= 0 && billing.DaysBetween(run[last][0].End, line.Start) > supplyDays:
				run = [][]AuditedLine{{line}}
			default:
				run = append(run, []AuditedLine{line})
			}
			if len(run) >= periodsInARow && contains(f.Month, line.Service) {
				out.addLines(slices.Concat(run[len(run)-periodsInARow:]...)...)
				isFound = true
			}
		}
		if isFound {
			out.count++
		}
	}
}

// supplyDays is the length of a device supply period.
const supplyDays = 30

// isManaged reports whether there was treatment management in the period of a supply, or in the month of its service date.
func isManaged(supply AuditedLine, managed []AuditedLine) bool {
	return slices.ContainsFunc(managed, func(m AuditedLine) bool {
		return contains(billing.Span{Start: supply.Start, End: supply.End}, m.Service) || m.Service[:len("2006-01")] == supply.Service[:len("2006-01")]
	})
}

// enrollmentSpike: three times the mean of three months is their sum.
func enrollmentSpike(f AuditFacts, out *patternHits) {
	before, enrolled := 0, []string{}
	start := billing.ParseDay(f.Month.Start).AddDate(0, -monthsBefore, 0).Format(time.DateOnly)
	for patient, day := range f.FirstBilled {
		switch {
		case contains(f.Month, day):
			enrolled = append(enrolled, patient)
		case start <= day && day < f.Month.Start:
			before++
		}
	}
	if len(enrolled) < minEnrolled || len(enrolled) < before {
		return
	}
	out.count = len(enrolled)
	for _, patient := range enrolled {
		out.addLines(f.ofMonth(patient)...)
	}
}

func severalDevices(f AuditFacts, out *patternHits) {
	for _, lines := range f.Lines {
		list, isFound := withCodes(lines, supplies), false
		for i, a := range list {
			for _, b := range list[i+1:] {
				if b.Start <= a.End && (contains(f.Month, a.Service) || contains(f.Month, b.Service)) {
					out.addLines(a, b)
					isFound = true
				}
			}
		}
		if isFound {
			out.count++
		}
	}
}

// sameMinutes compares whole minutes, as billed.
func sameMinutes(f AuditFacts, out *patternHits) {
	type equal struct {
		person  string
		minutes int
	}
	groups := map[equal][]LoggedTime{}
	for _, s := range f.Time {
		if minutes := int(s.Length / time.Minute); minutes > 0 && s.beganThisMonth {
			groups[equal{s.Person, minutes}] = append(groups[equal{s.Person, minutes}], s)
		}
	}
	for _, group := range groups {
		if len(group) >= equalMinutes {
			out.count += len(group)
			out.addTime(group...)
		}
	}
}

func lateEntries(f AuditFacts, out *patternHits) {
	for _, s := range f.Time {
		if s.beganThisMonth && s.Recorded.Sub(s.To) > lateAfter {
			out.count++
			out.addTime(s)
		}
	}
}

// impossibleDays: time across midnight belongs to both days, each with its part.
func impossibleDays(f AuditFacts, out *patternHits) {
	type date struct{ person, day string }
	sums, behind := map[date]time.Duration{}, map[date][]LoggedTime{}
	for _, s := range f.Time {
		for at, left := s.From, s.Length; left > 0; {
			next := collections.StartOfNextDay(at.In(f.Zone))
			part := min(left, next.Sub(at))
			key := date{s.Person, at.In(f.Zone).Format(time.DateOnly)}
			sums[key] += part
			behind[key] = append(behind[key], s)
			at, left = next, left-part
		}
	}
	for key, sum := range sums {
		if sum > longestDay && contains(f.Month, key.day) {
			out.count++
			out.addTime(behind[key]...)
		}
	}
}

func manualDays(f AuditFacts, out *patternHits) {
	for patient, days := range f.Days {
		if 2*days.Manual > days.WithData {
			out.count++
			out.addLines(f.ofMonth(patient)...)
		}
	}
}

// competingServices: a line counts if its period shares a day with a competing service.
func competingServices(f AuditFacts, out *patternHits) {
	for patient, spans := range f.CompetingServices {
		shared := slices.DeleteFunc(f.ofMonth(patient), func(line AuditedLine) bool {
			period := billing.Span{Start: cmp.Or(line.Start, line.Service), End: cmp.Or(line.End, line.Service)}
			return !slices.ContainsFunc(spans, func(s billing.Span) bool { return s.OverlapsOpen(period) })
		})
		if len(shared) > 0 {
			out.count++
			out.addLines(shared...)
		}
	}
}
