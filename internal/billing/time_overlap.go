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

// refuseOverlap refuses time that counts and shares a moment with other such time of its person, whoever the patient, or of its patient, whoever the
// person. What is changed without touching when, whose and what it is stays: time of before may overlap, and counts once.
func (e *Engine) refuseOverlap(tx core.App, entry *collections.TimeEntry) error {
	care := e.ruleOn(monthOf(e.Day(entry.StartedAt()))) == WithCareManagement
	if entry.Category() != collections.Interactive && (!care || entry.Category() != collections.CareManagement) || !moved(entry) {
		return nil
	}
	end := entry.EndedAt()
	if end.IsZero() {
		end = entry.StartedAt().Add(timerStops)
	}
	others, err := timeAround(tx, entry.UserRecordID(), entry.PatientID(), entry.Id, moments{entry.StartedAt(), end}, care)
	if err != nil || len(others) == 0 {
		return err
	}
	return overlaps(tx, others[0])
}

// moved reports whether an entry is new, or when, whose or what it is has changed.
func moved(entry *collections.TimeEntry) bool {
	record := entry.ProxyRecord()
	return record.IsNew() || slices.ContainsFunc([]string{"patient", "user", "category", "started_at", "ended_at"}, func(column string) bool {
		return record.GetString(column) != record.Original().GetString(column)
	})
}

// timeAround is the time of a person or a patient that shares a moment with a span.
func timeAround(tx core.App, userID, patientID, except string, span moments, care bool) ([]collections.OtherTime, error) {
	others, err := collections.TimeAround(tx, userID, patientID, except, span.from, span.until, care)
	return slices.DeleteFunc(others, func(o collections.OtherTime) bool {
		return !o.EndedAt(timerStops).After(span.from) || !o.EndedAt(timerStops).After(o.StartedAt())
	}), err
}

// overlaps is the fault that names the other entry.
func overlaps(tx core.App, other collections.OtherTime) error {
	names, err := Providers(tx, []string{other.User})
	if err != nil {
		return err
	}
	x := Overlap{
		ID: collections.Number(other.ID), User: collections.Number(other.User), UserName: names[other.User],
		StartedAt: other.StartedAt().UTC().Format(time.RFC3339), EndedAt: other.EndedAt(timerStops).UTC().Format(time.RFC3339),
	}
	f := fault.New(fault.Invalid, OverlapTime, fmt.Sprintf("The time overlaps time entry %d.", x.ID)).With("time_entry_id", x.ID).With("overlaps", x)
	f.Fields = fault.Fields{"started_at": {fmt.Sprintf("Overlaps time entry %d.", x.ID)}}
	return f
}
