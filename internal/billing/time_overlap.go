package billing

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// OverlapTime is the error code of time that was logged before. Source: docs/decisions/billing.md, "Overlapping time".
const OverlapTime = "overlapping_time"

// Overlap is the time entry that another one overlaps.
type Overlap struct {
	ID        int64  `json:"id"`
	User      int64  `json:"user"`
	UserName  string `json:"user_name"`
	StartedAt string `json:"started_at"`
	EndedAt   string `json:"ended_at"` // of a running timer, when it stops at the latest
}

// rejectOverlap rejects countable time that overlaps other such time of its user, for any patient, or of its patient, by any user. A change of
// other fields is allowed: older time may overlap, and counts once.
func (e *Engine) rejectOverlap(tx core.App, entry *collections.TimeEntry) error {
	if !changesTime(entry) {
		return nil
	}
	month := monthOf(e.Day(entry.StartedAt()))
	if counts, err := e.mayCount(tx, entry, month); err != nil || !counts {
		return err
	}
	end := entry.EndedAt()
	if end.IsZero() {
		end = entry.StartedAt().Add(timerLimit)
	}
	others, err := overlappingTimes(tx, entry.UserRecordID(), entry.PatientID(), entry.Id, interval{entry.StartedAt(), end}, e.timeRuleOf(month))
	if err != nil || len(others) == 0 {
		return err
	}
	return overlapFault(tx, others[0])
}

// mayCount reports whether time is of a category that counts for its patient and month.
func (e *Engine) mayCount(tx core.App, entry *collections.TimeEntry, month Span) (bool, error) {
	if entry.Category() != collections.CareManagement {
		return entry.Category() == collections.Interactive, nil
	}
	payers, err := collections.MinutesRuleOfPatient(tx, entry.PatientID())
	return e.ruleNameOf(month, payers) == WithCareManagement, err
}

// changesTime reports whether an entry is new, or its time, patient, user or category changed.
func changesTime(entry *collections.TimeEntry) bool {
	record := entry.ProxyRecord()
	return record.IsNew() || slices.ContainsFunc([]string{"patient", "user", "category", "started_at", "ended_at"}, func(column string) bool {
		return record.GetString(column) != record.Original().GetString(column)
	})
}

// overlappingTimes returns the time of a user or a patient that overlaps a span.
func overlappingTimes(tx core.App, userID, patientID, except string, span interval, rule collections.TimeRule) ([]collections.OverlappingTime, error) {
	others, err := collections.OverlappingTimes(tx, userID, patientID, except, span.from, span.until, rule)
	return slices.DeleteFunc(others, func(o collections.OverlappingTime) bool {
		return !o.EndedAt(timerLimit).After(span.from) || !o.EndedAt(timerLimit).After(o.StartedAt())
	}), err
}

// overlapFault returns the fault that names the other entry.
func overlapFault(tx core.App, other collections.OverlappingTime) error {
	names, err := ProviderNames(tx, []string{other.User})
	if err != nil {
		return err
	}
	x := Overlap{
		ID: collections.Number(other.ID), User: collections.Number(other.User), UserName: names[other.User],
		StartedAt: other.StartedAt().UTC().Format(time.RFC3339), EndedAt: other.EndedAt(timerLimit).UTC().Format(time.RFC3339),
	}
	f := fault.New(fault.Invalid, OverlapTime, fmt.Sprintf("The time overlaps time entry %d.", x.ID)).With("time_entry_id", x.ID).With("overlaps", x)
	f.Fields = fault.Fields{"started_at": {fmt.Sprintf("Overlaps time entry %d.", x.ID)}}
	return f
}

// interval is a time interval: from is included, until is not.
type interval struct{ from, until time.Time }

func (m interval) length() time.Duration { return max(0, m.until.Sub(m.from)) }

// subtractIntervals returns the parts of spans that none of others covers, in order.
func subtractIntervals(spans, others []interval) []interval {
	for _, other := range others {
		var left []interval
		for _, s := range spans {
			if !other.from.Before(s.until) || !s.from.Before(other.until) {
				left = append(left, s)
				continue
			}
			for _, part := range []interval{{s.from, other.from}, {other.until, s.until}} {
				if part.from.Before(part.until) {
					left = append(left, part)
				}
			}
		}
		spans = left
	}
	slices.SortFunc(spans, func(a, b interval) int { return a.from.Compare(b.from) })
	return spans
}

// unionLength returns the total length of spans, each moment counted once.
func unionLength(spans []interval) (total time.Duration) {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b interval) int { return a.from.Compare(b.from) })
	var covered time.Time
	for _, s := range spans {
		if covered.After(s.from) {
			s.from = covered
		}
		total += s.length()
		if s.until.After(covered) {
			covered = s.until
		}
	}
	return total
}
