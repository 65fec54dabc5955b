package alerts

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

// maxNotes limits each note field of an alert, in characters.
const maxNotes = 5000

// Find returns an alert by its public number, or a not-found fault.
func Find(app core.App, number int64) (*collections.Alert, error) {
	alert, err := collections.FindAlert(app, collections.NumberID(number))
	if err != nil {
		return nil, fault.OrMissing(err)
	}
	return alert, collections.Readable(alert.ProxyRecord())
}

// Act applies a clinician's action to an alert in the caller's transaction: status, notes and audit entry. A move that the status does not
// allow is an invalid_state fault.
func Act(tx core.App, alert *collections.Alert, action Action, by audit.Actor, now time.Time) error {
	from, heldUntil := alert.Status(), alert.HeldUntil()
	if err := applyMove(alert, Status(from), action, by, now); err != nil {
		return err
	}
	if err := alert.Store(tx); err != nil {
		return err
	}
	changes := audit.Changes{}
	changes.Record(changedStatus, from, alert.Status())
	if action.Move != Annotate {
		if !heldUntil.IsZero() {
			changes[changedHeld] = audit.Change{Old: collections.FormatInstant(heldUntil)}
		}
		if action.Reviewed != "" {
			changes[ChangedReview] = audit.Change{Old: action.Reviewed}
		}
	}
	for name, text := range map[string]phi.Text{"notes": action.Notes, "clinical_note": action.ClinicalNote, "outcome": phi.Text(action.Outcome)} {
		if text != "" {
			changes[name] = audit.Change{New: text}
		}
	}
	return auditAlert(tx, moveEvents[action.Move], alert.Id, alert.PatientID(), changes, by, now)
}

// Attach records that an alert was escalated and assigns it to the escalation; with "" the alert keeps the escalation that it has.
func Attach(tx core.App, alert *collections.Alert, escalationID string, by audit.Actor, now time.Time) error {
	if escalationID != "" {
		alert.SetEscalation(escalationID)
		if err := alert.Store(tx); err != nil {
			return err
		}
	}
	return auditAlert(tx, audit.AlertEscalate, alert.Id, alert.PatientID(), nil, by, now)
}

// applyMove changes the alert's columns as the move requires.
func applyMove(alert *collections.Alert, from Status, action Action, by audit.Actor, now time.Time) error {
	to, err := NextStatus(from, action.Move)
	if err != nil {
		return err
	}
	who := ActorName(by)
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
		all := appendNote(phi.Text(alert.GetString(column)), more).Reveal()
		if utf8.RuneCountInString(all) > maxNotes {
			return fault.Field(column, "The alert's notes are limited to 5000 characters. Shorten the note.")
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

// auditAlert appends the audit entry of an alert.
func auditAlert(tx core.App, event audit.Event, alertID, patientID string, changes audit.Changes, by audit.Actor, now time.Time) error {
	return audit.Append(tx, audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceAlert, ResourceID: strconv.FormatInt(collections.Number(alertID), 10),
		PatientID: patientID, Changes: changes,
	}, now)
}

// TrailStep is one step of an alert's audit trail.
type TrailStep struct {
	Action string // created, notified, acknowledged, note_added, escalated, resolved, auto_resolved, reopened
	At     time.Time
	Actor  string // e-mail address or system
	Detail string // outcome or note; "" for none
}

// trailActions maps audit events to the actions that the trail shows. Source: docs/decisions/alerts.md, "Acknowledge variants".
var trailActions = map[audit.Event]string{
	audit.AlertCreate: "created", audit.AlertAcknowledge: "acknowledged", audit.AlertNote: "note_added",
	audit.AlertEscalate: "escalated", audit.AlertResolve: "resolved", audit.AlertAutoResolve: "auto_resolved", audit.AlertReopen: "reopened",
	audit.AlertUndo: "undone",
}

// Trail returns the history of an alert, oldest first.
func Trail(app core.App, alertID string) (trail []TrailStep, err error) {
	filter := audit.Filter{ResourceType: audit.ResourceAlert, ResourceID: strconv.FormatInt(collections.Number(alertID), 10)}
	err = audit.Each(app, filter, func(entry audit.StoredEntry) error {
		action, shown := trailActions[audit.Event(entry.Event)]
		if !shown {
			return nil
		}
		step := TrailStep{Action: action, At: collections.ParseInstant(entry.RecordedAt), Actor: cmp.Or(entry.ActorEmail, System)}
		for _, field := range []string{"outcome", "clinical_note", "notes"} {
			if text, changes := entry.Changes[field].New.(string); changes && step.Detail == "" {
				step.Detail = text
			}
		}
		trail = append(trail, step)
		return nil
	})
	if err != nil {
		return nil, err
	}
	notified, err := collections.AnnouncementTimes(app, AnnouncementKey(alertID), AnnouncementKey(alertID)+renotifyInfix)
	for _, at := range notified {
		trail = append(trail, TrailStep{Action: "notified", At: at, Actor: System})
	}
	if len(notified) > 0 {
		slices.SortStableFunc(trail, func(a, b TrailStep) int { return cmp.Compare(a.At.UnixMicro(), b.At.UnixMicro()) })
	}
	return trail, err
}

// followUpBatch limits the reminders of one run; the next run, a minute later, continues.
const followUpBatch = 500

// RemindFollowUps reminds users of the follow-ups that they requested when they acknowledged an alert, and returns how many were sent.
// Source: docs/decisions/alerts.md, "Acknowledge variants".
func RemindFollowUps(ctx context.Context, app core.App, now time.Time) (notified int, err error) {
	ids, err := collections.AlertsToFollowUp(app, now, followUpBatch)
	if err != nil {
		return 0, err
	}
	return notifications.RemindEach(ctx, app, ids, func(tx core.App, id string) error { return remindFollowUp(tx, id, now) })
}

func remindFollowUp(tx core.App, id string, now time.Time) error {
	alert, err := collections.FindAlert(tx, id)
	if err != nil {
		return err
	}
	alert.SetFollowUpNotified()
	if err := alert.Store(tx); err != nil {
		return err
	}
	owner, err := collections.FindUserByEmail(tx, alert.FollowUpBy())
	if collections.IsNotFound(err) {
		return nil // a dashboard operator is no user and has no reminders
	}
	if err != nil {
		return err
	}
	label, err := collections.PatientLabel(tx, alert.PatientID())
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.FollowUpDue, Severity: "info", PatientID: alert.PatientID(), AlertID: id, UserID: owner.Id,
		Body: "Follow up: " + label + ", " + alert.DisplayMessage(),
		Key:  "alert " + id + " follow-up " + collections.FormatInstant(alert.FollowUpAt()),
	}, now)
}
