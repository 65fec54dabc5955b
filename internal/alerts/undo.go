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

// undoWithin limits how long an action on an alert can be undone. Source: docs/decisions/alerts.md, "Undo".
const undoWithin = time.Minute

// Names of audit changes that record the alert's state before an action, so that Undo restores it.
const (
	changedStatus = "status"
	changedNotes  = "notes"
	changedHeld   = "held_until"
	// ChangedReview is the previous review of the patient: time, space, reviewer.
	ChangedReview = "reviewed"
)

// Undone describes an undone action: its time, and the patient's previous review in the form of [ChangedReview].
type Undone struct {
	At     time.Time
	Review string
}

// Undo reverses the last action on an alert, in the caller's transaction, and audits it. Only its actor can, within a minute, and only if
// nothing has happened to the alert since. Source: docs/decisions/alerts.md, "Undo".
func Undo(tx core.App, alert *collections.Alert, by audit.Actor, now time.Time) (undone Undone, err error) {
	last, err := lastEvent(tx, alert.Id)
	if err != nil {
		return undone, err
	}
	undone.At = collections.ParseInstant(last.RecordedAt)
	switch event := audit.Event(last.Event); {
	case event != audit.AlertAcknowledge && event != audit.AlertResolve:
		return undone, fault.State("invalid_state", "There is nothing to undo: the last change of the alert was not an acknowledgment or a resolution.")
	case last.ActorType != string(audit.ByUser) || last.ActorID != by.ID || by.Type != audit.ByUser:
		return undone, fault.New(fault.Forbidden, "permission_denied", "Only the user who acted on the alert can undo it.")
	case now.Sub(undone.At) > undoWithin:
		return undone, fault.State("invalid_state", "It is too late to undo this.")
	case addedText(last, "outcome") != "" || addedText(last, "clinical_note") != "":
		return undone, fault.State("invalid_state", "An acknowledgment with an outcome cannot be undone.")
	}
	before, err := stateBefore(tx, alert, last, undone.At)
	if err != nil {
		return undone, err
	}
	undone.Review, _ = last.Changes[ChangedReview].Old.(string)
	from := alert.Status()
	if err := alert.Restore(tx, before, now); err != nil {
		return undone, err
	}
	changes := audit.Changes{}
	changes.Record(changedStatus, from, before.Status)
	if note := addedText(last, changedNotes); note != "" {
		changes[changedNotes] = audit.Change{Old: phi.Text(note)}
	}
	return undone, auditAlert(tx, audit.AlertUndo, alert.Id, alert.PatientID(), changes, by, now)
}

// stateBefore returns the alert's state before its last action. If it cannot be restored, the result is an invalid_state fault.
func stateBefore(tx core.App, alert *collections.Alert, last audit.StoredEntry, at time.Time) (before collections.AlertState, err error) {
	changed := fault.State("invalid_state", "The alert has changed since.")
	before = collections.AlertState{Status: alert.Status(), Acknowledged: true, Notes: alert.Notes()}
	if change, moved := last.Changes[changedStatus]; moved {
		if change.New != alert.Status() {
			return before, changed
		}
		before.Status, _ = change.Old.(string)
	}
	if note := addedText(last, changedNotes); note != "" {
		remainder, ends := strings.CutSuffix(alert.Notes().Reveal(), note)
		if !ends {
			return before, changed
		}
		before.Notes = phi.Text(strings.TrimSuffix(remainder, "\n"))
	}
	if held, _ := last.Changes[changedHeld].Old.(string); held != "" {
		before.HeldUntil = collections.ParseInstant(held)
	}
	if Status(before.Status) != StatusActive {
		return before, nil
	}
	before.Acknowledged = false
	return before, checkStillOpen(tx, alert, &before, at)
}

// checkStillOpen considers readings since the action: an alert about missing data is not reopened once data arrived, and a threshold alert
// counts the normal readings after it again.
func checkStillOpen(tx core.App, alert *collections.Alert, before *collections.AlertState, since time.Time) error {
	hasEnded := false
	switch alert.Type() {
	case TypeMissedReading, TypeNoReading24h:
		device := ""
		if alert.Type() == TypeNoReading24h {
			device = alert.DeviceID()
		}
		arrived, err := collections.HasReadingSince(tx, alert.PatientID(), device, since)
		if err != nil {
			return err
		}
		hasEnded = arrived
	case TypeHubOffline:
		hub, found, err := collections.FindHub(tx, alert.DeviceID())
		if err != nil {
			return err
		}
		hasEnded = found && hub.Status != collections.HubOffline
	default:
		arrived, err := collections.HasReadingSince(tx, alert.PatientID(), "", since)
		before.ResetNormalReadings = arrived
		return err
	}
	if hasEnded {
		return fault.State("invalid_state", "The data that the alert reports as missing has arrived since.")
	}
	return nil
}

// lastEvent returns the last change of an alert; reads are ignored.
func lastEvent(tx core.App, alertID string) (last audit.StoredEntry, err error) {
	filter := audit.Filter{ResourceType: audit.ResourceAlert, ResourceID: strconv.FormatInt(collections.Number(alertID), 10)}
	err = audit.Each(tx, filter, func(entry audit.StoredEntry) error {
		if strings.HasPrefix(entry.Event, "alert.") {
			last = entry
		}
		return nil
	})
	return last, err
}

// addedText returns the text that an entry added.
func addedText(entry audit.StoredEntry, field string) string {
	text, _ := entry.Changes[field].New.(string)
	return text
}
