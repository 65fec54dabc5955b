package billing

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// OverlapTime is the code of time that was logged before. Source: docs/decisions/billing.md, "Overlapping time".
const OverlapTime = "overlapping_time"

// Overlap is the time entry that another one overlaps.
type Overlap struct {
	ID        int64  `json:"id"`
	User      int64  `json:"user"`
	UserName  string `json:"user_name"`
	StartedAt string `json:"started_at"`
	EndedAt   string `json:"ended_at"` // of a timer that runs, when it stops at the latest
}

// rejectOverlap refuses time that counts and shares a moment with other such time of its person, whoever the patient, or of its patient, whoever the
// person. What is changed without touching when, whose and what it is stays: time of before may overlap, and counts once.
func (e *Engine) rejectOverlap(tx core.App, entry *collections.TimeEntry) error {
	care := e.ruleNameOf(monthOf(e.Day(entry.StartedAt()))) == WithCareManagement
	if entry.Category() != collections.Interactive && (!care || entry.Category() != collections.CareManagement) || !changesTime(entry) {
		return nil
	}
	end := entry.EndedAt()
	if end.IsZero() {
		end = entry.StartedAt().Add(timerLimit)
	}
	others, err := overlappingTimes(tx, entry.UserRecordID(), entry.PatientID(), entry.Id, interval{entry.StartedAt(), end}, care)
	if err != nil || len(others) == 0 {
		return err
	}
	return overlapFault(tx, others[0])
}

// changesTime reports whether an entry is new, or when, whose or what it is has changed.
func changesTime(entry *collections.TimeEntry) bool {
	record := entry.ProxyRecord()
	return record.IsNew() || slices.ContainsFunc([]string{"patient", "user", "category", "started_at", "ended_at"}, func(column string) bool {
		return record.GetString(column) != record.Original().GetString(column)
	})
}

// overlappingTimes is the time of a person or a patient that shares a moment with a span.
func overlappingTimes(tx core.App, userID, patientID, except string, span interval, care bool) ([]collections.OtherTime, error) {
	others, err := collections.TimeAround(tx, userID, patientID, except, span.from, span.until, care)
	return slices.DeleteFunc(others, func(o collections.OtherTime) bool {
		return !o.EndedAt(timerLimit).After(span.from) || !o.EndedAt(timerLimit).After(o.StartedAt())
	}), err
}

// overlapFault is the fault that names the other entry.
func overlapFault(tx core.App, other collections.OtherTime) error {
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
