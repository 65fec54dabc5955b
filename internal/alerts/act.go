package alerts

import (
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
func Find(app core.App, number int64) (*collections.Alert, error) {
	alert, err := collections.FindAlert(app, collections.NumberID(number))
	if err != nil {
		return nil, fault.OrMissing(err)
	}
	return alert, collections.Readable(alert.ProxyRecord())
}

// Act carries out what a person does with an alert, in the caller's transaction: its state, its notes and the audit entry.
// A move that is not possible is an invalid_state fault.
func Act(tx core.App, alert *collections.Alert, action Action, by audit.Actor, now time.Time) error {
	if err := change(alert, Status(alert.Status()), action, by, now); err != nil {
		return err
	}
	if err := alert.Store(tx); err != nil {
		return err
	}
	said := audit.Changes{}
	for name, text := range map[string]phi.Text{"notes": action.Notes, "clinical_note": action.ClinicalNote, "outcome": phi.Text(action.Outcome)} {
		if text != "" {
			said[name] = audit.Change{New: text}
		}
	}
	return note(tx, moveEvents[action.Move], alert.Id, alert.PatientID(), said, by, now)
}

// Attach records that an alert was escalated; it belongs to the escalation from now on, unless that is "".
func Attach(tx core.App, alert *collections.Alert, escalationID string, by audit.Actor, now time.Time) error {
	if escalationID != "" {
		alert.SetEscalation(escalationID)
		if err := alert.Store(tx); err != nil {
			return err
		}
	}
	return note(tx, audit.AlertEscalate, alert.Id, alert.PatientID(), nil, by, now)
}

// change makes of an alert what the move makes of one with this status.
func change(alert *collections.Alert, from Status, action Action, by audit.Actor, now time.Time) error {
	to, err := Next(from, action.Move)
	if err != nil {
		return err
	}
	who := authorOf(by)
	alert.SetStatus(string(to), now)
	if from == StatusActive && to != StatusActive {
		alert.SetAcknowledged(who, now)
	}
	if to == StatusResolved {
		alert.SetResolved(who, now)
	}
	for column, more := range map[string]phi.Text{collections.AlertNotes: action.Notes, collections.AlertClinicalNote: action.ClinicalNote} {
		if more == "" {
			continue
		}
		all := join(phi.Text(alert.GetString(column)), more).Reveal()
		if utf8.RuneCountInString(all) > notesKept {
			return fault.Field(column, "The alert has no room for a note of this length.")
		}
		alert.Set(column, all)
	}
	if action.Outcome != "" {
		alert.Set(collections.AlertOutcome, action.Outcome)
	}
	if !action.FollowUpAt.IsZero() {
		alert.SetFollowUp(who, action.FollowUpAt)
	}
	return nil
}

var moveEvents = map[Move]audit.Event{
	Acknowledge: audit.AlertAcknowledge, Resolve: audit.AlertResolve, Annotate: audit.AlertNote,
}

// note appends the audit entry of an alert.
func note(tx core.App, event audit.Event, alertID, patientID string, changes audit.Changes, by audit.Actor, now time.Time) error {
	return audit.Append(tx, audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceAlert, ResourceID: strconv.FormatInt(collections.Number(alertID), 10),
		PatientID: patientID, Changes: changes,
	}, now)
}
