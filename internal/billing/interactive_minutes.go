package billing

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// loggedTime returns the finished time of a month that counts, by patient.
func (e *Engine) loggedTime(app core.App, ids []string, month Span) (map[string][]LoggedTime, error) {
	return e.loggedTimeByRule(app, ids, month, e.timeRuleOf(month))
}

// loggedTimeByRule returns the finished time of a month that counts by a rule, by patient, including time that reaches into the month.
func (e *Engine) loggedTimeByRule(app core.App, ids []string, month Span, rule collections.TimeRule) (map[string][]LoggedTime, error) {
	from, to := e.monthWithLead(month)
	rows, err := collections.BillableTimes(app, ids, from, to, rule)
	if err != nil {
		return nil, err
	}
	start, _ := e.TimeRange(month)
	found := map[string][]LoggedTime{}
	for _, row := range rows {
		s := newLoggedTime(row)
		if s.BeganBefore = s.StartedAt.Before(start); !s.BeganBefore || s.EndedAt().After(start) {
			found[row.Patient] = append(found[row.Patient], s)
		}
	}
	return found, nil
}

// LoggedTime is a finished time entry of one staff member for one patient.
type LoggedTime struct {
	ID, Source, Category string // Category is interactive, or care management if the rule counts it
	StartedAt            time.Time
	Seconds              int
	HasNote              bool
	BeganBefore          bool // it began in the month before, where it counts
	counted              time.Duration
}

// EndedAt returns the end of the time.
func (t LoggedTime) EndedAt() time.Time {
	return t.StartedAt.Add(time.Duration(t.Seconds) * time.Second)
}

// isLive reports whether it is live contact in its month.
func (t LoggedTime) isLive() bool { return t.Category != collections.CareManagement && !t.BeganBefore }

func newLoggedTime(row collections.BillableTime) LoggedTime {
	return LoggedTime{
		ID: row.ID, Source: row.Source, Category: row.Category, StartedAt: collections.ParseInstant(row.Started), Seconds: row.Seconds, HasNote: row.Noted,
	}
}

// parseLoggedTime parses a row of [collections.BillableTimeLines].
func parseLoggedTime(line string) (list []LoggedTime) {
	for entry := range strings.SplitSeq(line, ";") {
		x := strings.Split(entry, ",")
		seconds, _ := strconv.Atoi(x[3]) // written by SQLite as a number
		list = append(list, LoggedTime{ID: x[0], Source: x[1], Category: x[5], StartedAt: collections.ParseInstant(x[2]), Seconds: seconds, HasNote: x[4] == "1"})
	}
	return list
}

// splitByMonth groups time by the practice's month in which it began. Time that reaches beyond the end of its month is also part of the next
// one: it counts for nothing there, but covers what it overlaps. Care management counts by the rule of the patient's payer, if it has one.
func (e *Engine) splitByMonth(list []LoggedTime, payers string) map[Span][]LoggedTime {
	months := map[Span][]LoggedTime{}
	for _, s := range list {
		day := e.Day(s.StartedAt)
		month := monthOf(day)
		if s.Category == collections.CareManagement && e.ruleNameOf(month, payers) != WithCareManagement {
			continue
		}
		months[month] = append(months[month], s)
		if day != month.End { // no time entry exceeds a day
			continue
		}
		if next := monthOf(AddDays(month.End, 1)); e.Day(s.EndedAt().Add(-time.Nanosecond)) >= next.Start {
			s.BeganBefore = true
			months[next] = append(months[next], s)
		}
	}
	return months
}

// dropUncountedTime removes time on days without monitoring or consent.
func (e *Engine) dropUncountedTime(f *patientFacts, times []LoggedTime, month Span) []LoggedTime {
	counts := e.countedDays(f, month)
	return slices.DeleteFunc(slices.Clone(times), func(s LoggedTime) bool { return !counts(e.Day(s.StartedAt)) })
}

// dropUnmonitoredTime removes time on days without monitoring.
func (e *Engine) dropUnmonitoredTime(f *patientFacts, times []LoggedTime) []LoggedTime {
	return slices.DeleteFunc(slices.Clone(times), func(s LoggedTime) bool { return !f.monitoredOn(e.Day(s.StartedAt)) })
}

// setCounted sets how much of each time entry no earlier one covers, in order of start: each moment counts once, for any number of users who
// logged it.
func setCounted(times []LoggedTime) {
	slices.SortFunc(times, func(a, b LoggedTime) int {
		if order := a.StartedAt.Compare(b.StartedAt); order != 0 {
			return order
		}
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.ID, b.ID))
	})
	var covered time.Time
	for i := range times {
		s := &times[i]
		from, until := s.StartedAt, s.EndedAt()
		if covered.After(from) {
			from = covered
		}
		if s.counted = max(0, until.Sub(from)); s.BeganBefore {
			s.counted = 0
		}
		if until.After(covered) {
			covered = until
		}
	}
}

// CountedSeconds returns the seconds that count for one patient and month: each moment once, and care management only with live contact.
func CountedSeconds(times []LoggedTime) int {
	times = slices.Clone(times)
	setCounted(times)
	return sumCounted(times)
}

// sumCounted sums the result of [setCounted].
func sumCounted(times []LoggedTime) int {
	total, live := time.Duration(0), false
	for _, s := range times {
		total += s.counted
		live = live || s.isLive()
	}
	if !live {
		return 0
	}
	return int(total / time.Second)
}

// MonthTime is a patient's time in a month, in whole minutes.
type MonthTime struct {
	collections.MinutesByCategory
	// NextThreshold is the minutes required for the next unit; nil if there is none.
	NextThreshold *int `json:"next_threshold_minutes"`
}

// TimeSummary sums the finished time of a month by patient; userID, patientID and teamOf filter it, "" for all.
func (e *Engine) TimeSummary(app core.App, month Span, userID, patientID, teamOf string) (list []MonthTime, err error) {
	from, to := e.instants(month)
	sums, err := collections.SumTime(app, from, to, userID, patientID, teamOf, e.timeRuleOf(month))
	for _, sum := range sums {
		list = append(list, MonthTime{sum, e.nextThreshold(sum.Counted, month.End)})
	}
	return list, err
}

// nextThreshold returns the next number of minutes in the month of a day that supports a unit.
func (e *Engine) nextThreshold(minutes int, day string) *int {
	for n := range e.MaxUnits99458 + 1 {
		if threshold := baseRule(FirstTwenty, day).MinMinutes + n*baseRule(NextTwenty, day).Block; minutes < threshold {
			return &threshold
		}
	}
	return nil
}

// countForDecision is [Engine.countFacts] for entries that are being decided: it also subtracts minutes that count elsewhere and adds those
// without live contact.
func (e *Engine) countForDecision(app core.App, patients map[string]*patientFacts, list []claimedEntry) ([]countedFacts, error) {
	found, err := e.countFacts(app, patients, list)
	if err != nil {
		return nil, err
	}
	months := map[timeMonth][]int{}
	for i, x := range list {
		if baseRule(x.code, x.service).Category == collections.Interactive {
			month := timeMonth{collections.Interactive, monthOf(x.period.Start), x.rule}
			months[month] = append(months[month], i)
		}
	}
	for month, indexes := range months {
		if err := e.subtractElsewhere(app, patients, list, found, month, indexes); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// subtractElsewhere subtracts, for the entries of a list at the given indexes, the minutes in which the staff member was with another patient in
// an earlier call. It also sets the minutes without live contact or of review.
func (e *Engine) subtractElsewhere(
	app core.App, patients map[string]*patientFacts, list []claimedEntry, found []countedFacts, m timeMonth, indexes []int,
) error {
	people := map[string]bool{}
	for _, i := range indexes {
		people[list[i].patient] = true
	}
	ids := slices.Sorted(maps.Keys(people))
	from, to := e.monthWithLead(m.month)
	rows, err := collections.OverlapsElsewhere(app, ids, from, to)
	if err != nil {
		return err
	}
	elsewhere := map[string][]collections.OverlapElsewhere{}
	for _, row := range rows {
		elsewhere[row.Patient] = append(elsewhere[row.Patient], row.OverlapElsewhere)
	}
	times := map[string][]LoggedTime{}
	if len(elsewhere) > 0 {
		if times, err = e.loggedTimeByRule(app, slices.Sorted(maps.Keys(elsewhere)), m.month, m.rule); err != nil {
			return err
		}
	}
	uncounted, err := e.uncountedMinutes(app, ids, m)
	if err != nil {
		return err
	}
	for _, i := range indexes {
		c, id := &found[i], list[i].patient
		if overlaps := elsewhere[id]; len(overlaps) > 0 && c.minutes > 0 {
			own := e.dropUncountedTime(patients[id], times[id], m.month)
			c.minutes = max(0, c.minutes-CountedSeconds(own)/60+int(unionLength(exclusiveIntervals(own, overlaps))/time.Second)/60)
		}
		c.uncountedMinutes = uncounted[id]
	}
	return nil
}

// exclusiveIntervals returns the intervals of logged time in which its staff members were with no other patient, without time that counted in
// the month before.
func exclusiveIntervals(list []LoggedTime, elsewhere []collections.OverlapElsewhere) (spans []interval) {
	var before []interval
	for _, s := range list {
		own := []interval{{s.StartedAt, s.EndedAt()}}
		if s.BeganBefore {
			before = append(before, own...)
			continue
		}
		spans = append(spans, subtractIntervals(own, intervalsElsewhere(s.ID, elsewhere))...)
	}
	return subtractIntervals(spans, before)
}

// intervalsElsewhere returns the intervals in which the staff member of a time entry was with another patient.
func intervalsElsewhere(id string, elsewhere []collections.OverlapElsewhere) (away []interval) {
	for _, x := range elsewhere {
		if x.ID == id {
			away = append(away, interval{collections.ParseInstant(x.From), collections.ParseInstant(x.Until)})
		}
	}
	return away
}

// uncountedMinutes returns the minutes of a month that count for nothing: without live contact, or of review.
func (e *Engine) uncountedMinutes(app core.App, ids []string, m timeMonth) (map[string]int, error) {
	first, last := e.instants(m.month)
	rows, err := collections.SecondsNotLive(app, ids, first, last, m.rule)
	if err != nil {
		return nil, err
	}
	minutes := map[string]int{}
	for _, row := range rows {
		minutes[row.Patient] = row.Seconds / 60
	}
	one := ""
	if len(ids) == 1 {
		one = ids[0]
	}
	sums, err := e.TimeSummary(app, m.month, "", one, "")
	for _, sum := range sums {
		minutes[sum.PatientID] += sum.Review
	}
	return minutes, err
}
