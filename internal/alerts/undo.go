package alerts

import (
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// undoWithin is how long what somebody did with an alert can be undone. Source: docs/decisions/alerts.md, "Undo".
const undoWithin = time.Minute

// What the audit entry of a move tells of the alert before it, so that the move can be undone.
const (
	changedStatus = "status"
	changedNotes  = "notes"
	changedHeld   = "held_until"
	// ChangedReview is when the patient was reviewed before, and by whom, separated by a space.
	ChangedReview = "reviewed"
)

// Undone is what was undone: when it had been done, and when the patient had been reviewed before that, as [ChangedReview] has it.
type Undone struct {
	At     time.Time
	Review string
}

// Undo takes back the last thing that was done with an alert, in the caller's transaction, and records that. Only whoever did it can, soon after, and
// only when nothing has happened to the alert since. Source: docs/decisions/alerts.md, "Undo".
func Undo(tx core.App, alert *collections.Alert, by audit.Actor, now time.Time) (done Undone, err error) {
	last, err := lastEvent(tx, alert.Id)
	if err != nil {
		return done, err
	}
	done.At = collections.ParseInstant(last.RecordedAt)
	switch event := audit.Event(last.Event); {
	case event != audit.AlertAcknowledge && event != audit.AlertResolve:
		return done, fault.State("invalid_state", "There is nothing to undo: the last that happened to the alert was something else.")
	case last.ActorType != string(audit.ByUser) || last.ActorID != by.ID || by.Type != audit.ByUser:
		return done, fault.New(fault.Forbidden, "permission_denied", "Only who did it can undo it.")
	case now.Sub(done.At) > undoWithin:
		return done, fault.State("invalid_state", "It is too late to undo this.")
	case said(last, "outcome") != "" || said(last, "clinical_note") != "":
		return done, fault.State("invalid_state", "An acknowledgement with an outcome cannot be undone.")
	}
	before, err := stoodBefore(tx, alert, last, done.At)
	if err != nil {
		return done, err
	}
	done.Review, _ = last.Changes[ChangedReview].Old.(string)
	was := alert.Status()
	if err := alert.Restore(tx, before, now); err != nil {
		return done, err
	}
	changes := audit.Changes{}
	changes.Note(changedStatus, was, before.Status)
	if note := said(last, changedNotes); note != "" {
		changes[changedNotes] = audit.Change{Old: phi.Text(note)}
	}
	return done, note(tx, audit.AlertUndo, alert.Id, alert.PatientID(), changes, by, now)
}

// stoodBefore is how an alert stood before the last thing that was done with it. What cannot be told, or what has come true since, is an
// invalid_state fault.
func stoodBefore(tx core.App, alert *collections.Alert, last audit.Stored, at time.Time) (was collections.AlertBefore, err error) {
	changed := fault.State("invalid_state", "The alert has changed since.")
	was = collections.AlertBefore{Status: alert.Status(), Acknowledged: true, Notes: alert.Notes()}
	if change, moved := last.Changes[changedStatus]; moved {
		if change.New != alert.Status() {
			return was, changed
		}
		was.Status, _ = change.Old.(string)
	}
	if note := said(last, changedNotes); note != "" {
		rest, ends := strings.CutSuffix(alert.Notes().Reveal(), note)
		if !ends {
			return was, changed
		}
		was.Notes = phi.Text(strings.TrimSuffix(rest, "\n"))
	}
	if held, _ := last.Changes[changedHeld].Old.(string); held != "" {
		was.HeldUntil = collections.ParseInstant(held)
	}
	if Status(was.Status) != StatusActive {
		return was, nil
	}
	was.Acknowledged = false
	return was, met(tx, alert, &was, at)
}

// met looks at what came while the alert was answered: what says that data is missing is not made to wait again once there is some, and a threshold
// alert counts the normal readings after it anew.
func met(tx core.App, alert *collections.Alert, was *collections.AlertBefore, since time.Time) error {
	over := false
	switch alert.Type() {
	case TypeMissedReading, TypeNoReading24h:
		device := ""
		if alert.Type() == TypeNoReading24h {
			device = alert.DeviceID()
		}
		came, err := collections.ReadSince(tx, alert.PatientID(), device, since)
		if err != nil {
			return err
		}
		over = came
	case TypeHubOffline:
		hub, known, err := collections.FindHub(tx, alert.DeviceID())
		if err != nil {
			return err
		}
		over = known && hub.Status != collections.HubOffline
	default:
		came, err := collections.ReadSince(tx, alert.PatientID(), "", since)
		was.CountAnew = came
		return err
	}
	if over {
		return fault.State("invalid_state", "What the alert missed has come since.")
	}
	return nil
}

// lastEvent is the last that happened to an alert, who read it left out.
func lastEvent(tx core.App, alertID string) (last audit.Stored, err error) {
	filter := audit.Filter{ResourceType: audit.ResourceAlert, ResourceID: strconv.FormatInt(collections.Number(alertID), 10)}
	err = audit.Each(tx, filter, func(entry audit.Stored) error {
		if strings.HasPrefix(entry.Event, "alert.") {
			last = entry
		}
		return nil
	})
	return last, err
}

// said is the text that an entry added.
func said(entry audit.Stored, field string) string {
	text, _ := entry.Changes[field].New.(string)
	return text
}
