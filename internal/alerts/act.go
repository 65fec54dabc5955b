package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// notesKept is how much an alert holds of notes, each.
const notesKept = 5000

// Find returns an alert by its public number, or a not-found fault.
func Find(app core.App, number int64) (*core.Record, error) {
	record, err := app.FindRecordById(collections.Alerts, collections.NumberID(number))
	if collections.Missing(err) {
		return nil, fault.Missing()
	}
	if err != nil {
		return nil, fmt.Errorf("find alert: %w", err)
	}
	return record, collections.Readable(record)
}

// Act carries out what a person does with an alert, in the caller's transaction: its state, its notes and the audit entry.
// The record is changed to what is stored then. A move that is not possible is an invalid_state fault. Ranking the patient
// anew is the caller's.
func Act(tx core.App, record *core.Record, action Action, by audit.Actor, now time.Time) error {
	changes, err := plan(record, action, by, now)
	if err != nil {
		return err
	}
	for column, value := range changes {
		record.Set(column, value)
	}
	if err := collections.Update(tx, record, slices.Collect(maps.Keys(changes))...); err != nil {
		return err
	}
	return Record(tx, record, action, by, now)
}

// plan is what the move changes, by column.
func plan(record *core.Record, action Action, by audit.Actor, now time.Time) (map[string]any, error) {
	from := Status(record.GetString("status"))
	to, err := Next(from, action.Move)
	if err != nil {
		return nil, err
	}
	at, who := collections.Instant(now), authorOf(by)
	changes := map[string]any{"status": string(to), "updated_at": at}
	if from == StatusActive && to != StatusActive {
		changes["acknowledged"], changes["acknowledged_by"], changes["acknowledged_at"] = true, who, at
	}
	if to == StatusResolved {
		changes["resolved_by"], changes["resolved_at"] = who, at
	}
	for column, more := range map[string]phi.Text{"notes": action.Notes, "clinical_note": action.ClinicalNote} {
		if more == "" {
			continue
		}
		all := join(phi.Text(record.GetString(column)), more)
		if utf8.RuneCountInString(all.Reveal()) > notesKept {
			return nil, fault.Field(column, "The alert has no room for a note of this length.")
		}
		changes[column] = all.Reveal()
	}
	if action.Outcome != "" {
		changes["outcome"] = action.Outcome
	}
	if !action.FollowUpAt.IsZero() {
		changes["follow_up_required"], changes["follow_up_told"] = true, false
		changes["follow_up_at"], changes["follow_up_by"] = collections.Instant(action.FollowUpAt), who
	}
	return changes, nil
}

var moveEvents = map[Move]audit.Event{
	Acknowledge: audit.AlertAcknowledge, Resolve: audit.AlertResolve, Annotate: audit.AlertNote, Escalate: audit.AlertEscalate,
}

// Record appends the audit entry of a move.
func Record(tx core.App, record *core.Record, action Action, by audit.Actor, now time.Time) error {
	changes := audit.Changes{}
	for name, text := range map[string]phi.Text{"notes": action.Notes, "clinical_note": action.ClinicalNote, "outcome": phi.Text(action.Outcome)} {
		if text != "" {
			changes[name] = audit.Change{New: text}
		}
	}
	return noteMove(tx, record, action.Move, changes, by, now)
}

func noteMove(tx core.App, record *core.Record, move Move, changes audit.Changes, by audit.Actor, now time.Time) error {
	return audit.Append(tx, audit.Entry{
		Event: moveEvents[move], Actor: by, ResourceType: audit.ResourceAlert, ResourceID: strconv.FormatInt(collections.Number(record.Id), 10),
		PatientID: record.GetString("patient"), Changes: changes,
	}, now)
}
