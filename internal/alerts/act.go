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

// maxNotes is how much an alert holds of notes, each.
const maxNotes = 5000

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
	from, heldUntil := alert.Status(), alert.HeldUntil()
	if err := change(alert, Status(from), action, by, now); err != nil {
		return err
	}
	if err := alert.Store(tx); err != nil {
		return err
	}
	said := audit.Changes{}
	said.Note(changedStatus, from, alert.Status())
	if action.Move != Annotate {
		if !heldUntil.IsZero() {
			said[changedHeld] = audit.Change{Old: collections.Instant(heldUntil)}
		}
		if action.Reviewed != "" {
			said[ChangedReview] = audit.Change{Old: action.Reviewed}
		}
	}
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
		if utf8.RuneCountInString(all) > maxNotes {
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

// Step is one line of an alert's audit trail.
type Step struct {
	Action string // created, notified, acknowledged, note_added, escalated, resolved, auto_resolved, reopened
	At     time.Time
	Actor  string // e-mail address or system
	Detail string // outcome or note; "" for none
}

// steps names what the trail shows of the audit log. Source: docs/decisions/alerts.md, "Acknowledge variants".
var steps = map[audit.Event]string{
	audit.AlertCreate: "created", audit.AlertAcknowledge: "acknowledged", audit.AlertNote: "note_added",
	audit.AlertEscalate: "escalated", audit.AlertResolve: "resolved", audit.AlertAutoResolve: "auto_resolved", audit.AlertReopen: "reopened",
	audit.AlertUndo: "undone",
}

// AnnouncementKey makes the announcement of an alert one; the trail finds by it when people were told.
func AnnouncementKey(alertID string) string { return "alert " + alertID }

// toldAgain follows the key of an alert that is told again.
const toldAgain = " again "

// ToldAgainKey makes the announcement that an alert still stands at the end of a snooze one; the trail finds it, too.
func ToldAgainKey(alertID, snoozeID string) string {
	return AnnouncementKey(alertID) + toldAgain + snoozeID
}

// Trail is what happened to an alert, oldest first.
func Trail(app core.App, alertID string) (trail []Step, err error) {
	filter := audit.Filter{ResourceType: audit.ResourceAlert, ResourceID: strconv.FormatInt(collections.Number(alertID), 10)}
	err = audit.Each(app, filter, func(entry audit.Stored) error {
		action, shown := steps[audit.Event(entry.Event)]
		if !shown {
			return nil
		}
		step := Step{Action: action, At: collections.ParseInstant(entry.RecordedAt), Actor: cmp.Or(entry.ActorEmail, System)}
		for _, field := range []string{"outcome", "clinical_note", "notes"} {
			if text, said := entry.Changes[field].New.(string); said && step.Detail == "" {
				step.Detail = text
			}
		}
		trail = append(trail, step)
		return nil
	})
	if err != nil {
		return nil, err
	}
	told, err := collections.AnnouncementsTold(app, AnnouncementKey(alertID), AnnouncementKey(alertID)+toldAgain)
	for _, at := range told {
		trail = append(trail, Step{Action: "notified", At: at, Actor: System})
	}
	if len(told) > 0 {
		slices.SortStableFunc(trail, func(a, b Step) int { return cmp.Compare(a.At.UnixMicro(), b.At.UnixMicro()) })
	}
	return trail, err
}

// followUpRound bounds what one round reminds of; the next minute goes on.
const followUpRound = 500

// RemindFollowUps reminds of every alert whose follow-up is due whoever asked for that when acknowledging it; told is how many.
// Source: docs/decisions/alerts.md, "Acknowledge variants".
func RemindFollowUps(ctx context.Context, app core.App, now time.Time) (told int, err error) {
	ids, err := collections.AlertsToFollowUp(app, now, followUpRound)
	if err != nil {
		return 0, err
	}
	return notifications.RemindOfEach(ctx, app, ids, func(tx core.App, id string) error { return remindFollowUp(tx, id, now) })
}

func remindFollowUp(tx core.App, id string, now time.Time) error {
	alert, err := collections.FindAlert(tx, id)
	if err != nil {
		return err
	}
	alert.SetFollowUpTold()
	if err := alert.Store(tx); err != nil {
		return err
	}
	owner, err := collections.FindUserByEmail(tx, alert.FollowUpBy())
	if collections.Missing(err) {
		return nil // an operator at the dashboard has no list of reminders
	}
	if err != nil {
		return err
	}
	whom, err := collections.PatientLabel(tx, alert.PatientID())
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.FollowUpDue, Severity: "info", PatientID: alert.PatientID(), AlertID: id, UserID: owner.Id,
		Body: "Follow up: " + whom + ", " + alert.MessageShown(),
		Key:  "alert " + id + " follow-up " + collections.Instant(alert.FollowUpAt()),
	}, now)
}
