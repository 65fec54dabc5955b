package billing

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
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

// splitByMonth parts stretches by the practice's month in which they began. One that reaches beyond the end of its month is before the next one, too:
// there it counts for nothing and covers what it covers.
func (e *Engine) splitByMonth(list []LoggedTime) map[Span][]LoggedTime {
	months := map[Span][]LoggedTime{}
	for _, s := range list {
		day := e.Day(s.StartedAt)
		month := monthOf(day)
		if s.Category == collections.CareManagement && e.ruleNameOf(month) != WithCareManagement {
			continue
		}
		months[month] = append(months[month], s)
		if day != month.End { // nothing lasts longer than a day
			continue
		}
		if next := monthOf(AddDays(month.End, 1)); e.Day(s.EndedAt().Add(-time.Nanosecond)) >= next.Start {
			s.BeganBefore = true
			months[next] = append(months[next], s)
		}
	}
	return months
}

// setCounted says how much of each stretch no earlier one covers, in the order in which they began: each moment counts once, whoever logged it how often.
func setCounted(stretches []LoggedTime) {
	slices.SortFunc(stretches, func(a, b LoggedTime) int {
		if order := a.StartedAt.Compare(b.StartedAt); order != 0 {
			return order
		}
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.ID, b.ID))
	})
	var covered time.Time
	for i := range stretches {
		s := &stretches[i]
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

// CountedSeconds are the seconds of stretches of one patient and month that count: each moment once, and care management beside live contact alone.
func CountedSeconds(stretches []LoggedTime) int {
	stretches = slices.Clone(stretches)
	setCounted(stretches)
	return sumCounted(stretches)
}

// sumCounted sums what [uncover] left.
func sumCounted(stretches []LoggedTime) int {
	total, live := time.Duration(0), false
	for _, s := range stretches {
		total += s.counted
		live = live || s.isLive()
	}
	if !live {
		return 0
	}
	return int(total / time.Second)
}

// EndedAt is when the stretch ended.
func (s LoggedTime) EndedAt() time.Time {
	return s.StartedAt.Add(time.Duration(s.Seconds) * time.Second)
}

// isLive reports whether it is live contact in its month.
func (s LoggedTime) isLive() bool { return s.Category != collections.CareManagement && !s.BeganBefore }

func newLoggedTime(row collections.TimeStretch) LoggedTime {
	return LoggedTime{
		ID: row.ID, Source: row.Source, Category: row.Category, StartedAt: collections.ParseInstant(row.Started), Seconds: row.Seconds, HasNote: row.Noted,
	}
}

// parseLoggedTime reads a line of [collections.StretchLines].
func parseLoggedTime(line string) (list []LoggedTime) {
	for stretch := range strings.SplitSeq(line, ";") {
		x := strings.Split(stretch, ",")
		seconds, _ := strconv.Atoi(x[3]) // SQLite made it from a number
		list = append(list, LoggedTime{ID: x[0], Source: x[1], Category: x[5], StartedAt: collections.ParseInstant(x[2]), Seconds: seconds, HasNote: x[4] == "1"})
	}
	return list
}
