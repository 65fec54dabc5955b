package billing

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Bounds of time entries. Source: docs/decisions/billing.md, "Interactive-time endpoints".
const (
	maxDuration  = 4 * time.Hour
	maxTimeAge   = 35 * 24 * time.Hour
	timerLimit   = time.Hour
	msgNotes     = "Interactive time needs notes."
	msgTooLong   = "Must be from 1 second to 4 hours."
	msgTooOld    = "Must be within the last 35 days."
	msgNotFuture = "Must not be in the future."
)

// Categories and Activities are the values of a time entry.
var (
	Categories     = []string{collections.Interactive, collections.ReviewTime, collections.Interpretation, collections.CareManagement}
	Activities     = []string{"triage", "phone_call", "video_call", "message", "education", "other"}
	contactMethods = []string{collections.ByPhone, collections.ByVideo, collections.InPerson, collections.ByMessage}
)

// contactOfActivity maps the activities that imply a contact method.
var contactOfActivity = map[string]string{"phone_call": collections.ByPhone, "video_call": collections.ByVideo}

// TimeBody is a request body about time; the members used depend on the endpoint.
type TimeBody struct {
	PatientID     validate.String  `json:"patient_id"`
	Category      validate.String  `json:"category"`
	Activity      validate.String  `json:"activity"`
	ContactMethod validate.String  `json:"contact_method"`
	StartedAt     validate.String  `json:"started_at"`
	EndedAt       validate.String  `json:"ended_at"`
	Seconds       validate.Integer `json:"duration_seconds"`
	Notes         validate.String  `json:"notes"`
}

// TimeDraft is a validated body; empty and zero members were not sent.
type TimeDraft struct {
	PatientID, Category, Activity, ContactMethod string
	StartedAt, EndedAt                           time.Time
	Seconds                                      int
	Notes                                        phi.Text
	notesSent, contactSent                       bool
}

// Read validates the body of a finished time entry.
func (b TimeBody) Read(c *validate.Checks, now time.Time) TimeDraft {
	d := b.ReadStart(c)
	d.StartedAt = c.Instant("started_at", b.StartedAt, true)
	b.readEnd(c, &d)
	if d.Category == collections.Interactive && d.Notes == "" && c.Fields["notes"] == nil {
		c.Reject("notes", msgNotes)
	}
	d.checkDates(c, now)
	return d
}

// readEnd validates the end of the time, or its duration.
func (b TimeBody) readEnd(c *validate.Checks, d *TimeDraft) {
	d.EndedAt = c.Instant("ended_at", b.EndedAt, false)
	seconds := c.Integer("duration_seconds", b.Seconds, false)
	switch {
	case d.StartedAt.IsZero():
		return
	case seconds != nil:
		if *seconds < 1 || *seconds > int64(maxDuration/time.Second) {
			c.Reject("duration_seconds", msgTooLong)
			return
		}
		d.Seconds = int(*seconds)
		end := d.StartedAt.Add(time.Duration(d.Seconds) * time.Second)
		if !d.EndedAt.IsZero() && !d.EndedAt.Equal(end) {
			c.Reject("duration_seconds", "Must be the time from started_at to ended_at.")
		}
		d.EndedAt = end
	case !d.EndedAt.IsZero():
		d.Seconds = int(d.EndedAt.Sub(d.StartedAt) / time.Second)
		if d.Seconds < 1 || d.EndedAt.Sub(d.StartedAt) > maxDuration {
			c.Reject("ended_at", msgTooLong)
		}
	case c.Fields["ended_at"] == nil && c.Fields["duration_seconds"] == nil:
		c.Reject("ended_at", "Either ended_at or duration_seconds is required.")
	}
}

func (d TimeDraft) checkDates(c *validate.Checks, now time.Time) {
	if d.StartedAt.IsZero() || len(c.Fields) > 0 {
		return
	}
	switch {
	case d.StartedAt.After(now):
		c.Reject("started_at", msgNotFuture)
	case d.EndedAt.After(now):
		c.Reject("ended_at", msgNotFuture)
	case d.StartedAt.Before(now.Add(-maxTimeAge)):
		c.Reject("started_at", msgTooOld)
	}
}

// ReadStart validates the body that starts a timer.
func (b TimeBody) ReadStart(c *validate.Checks) TimeDraft {
	d := TimeDraft{
		PatientID: c.UUID("patient_id", b.PatientID, true), Category: c.Text("category", b.Category, validate.Required(0).OneOf(Categories...)),
	}
	b.readDetails(c, &d)
	return d
}

func (b TimeBody) readDetails(c *validate.Checks, d *TimeDraft) {
	d.Activity = c.Text("activity", b.Activity, validate.Optional(0).OneOf(Activities...))
	d.ContactMethod, d.contactSent = c.Text("contact_method", b.ContactMethod, validate.Optional(0).OneOf(contactMethods...)), b.ContactMethod.Sent()
	d.Notes, d.notesSent = phi.Text(c.Text("notes", b.Notes, validate.Optional(4000).Multiline())), b.Notes.Sent()
}

// ReadChange validates the body that changes an entry or stops a timer; omitted members stay as they are.
func (b TimeBody) ReadChange(c *validate.Checks, entry *collections.TimeEntry, now time.Time) TimeDraft {
	d := TimeDraft{Category: c.Text("category", b.Category, validate.Optional(0).OneOf(Categories...))}
	validate.NotNull(c, "category", b.Category)
	validate.NotNull(c, "started_at", b.StartedAt)
	b.readDetails(c, &d)
	if !b.StartedAt.Sent() && !b.EndedAt.Sent() && !b.Seconds.Sent() {
		return d
	}
	if d.StartedAt = c.Instant("started_at", b.StartedAt, false); d.StartedAt.IsZero() {
		d.StartedAt = entry.StartedAt()
	}
	if !b.EndedAt.Sent() && !b.Seconds.Sent() {
		b.Seconds = validate.Of(int64(entry.Seconds()))
	}
	b.readEnd(c, &d)
	d.checkDates(c, now)
	return d
}

// LogTime stores a user's finished time entry.
func (e *Engine) LogTime(app core.App, userID string, d TimeDraft, by audit.Actor, now time.Time) (*collections.TimeEntry, error) {
	return e.createTime(app, userID, d, collections.TimeByHand, by, now)
}

// StartTimer starts a user's timer; each user has at most one.
func (e *Engine) StartTimer(app core.App, userID string, d TimeDraft, by audit.Actor, now time.Time) (*collections.TimeEntry, error) {
	d.StartedAt = now
	return e.createTime(app, userID, d, collections.TimeByTimer, by, now)
}

func (e *Engine) createTime(app core.App, userID string, d TimeDraft, source string, by audit.Actor, now time.Time) (entry *collections.TimeEntry, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		patient, err := collections.FindPatient(tx, d.PatientID)
		if err != nil {
			return fault.OrMissing(err)
		}
		if !patient.Active() && source == collections.TimeByTimer {
			return fault.State("invalid_state", "The patient is archived.")
		}
		if source == collections.TimeByTimer {
			if _, err := collections.RunningTimer(tx, userID); err == nil {
				return fault.State("invalid_state", "A timer is running already.")
			} else if !collections.IsNotFound(err) {
				return err
			}
		}
		if entry, err = collections.NewTimeEntry(tx, now); err != nil {
			return err
		}
		entry.Fill(collections.TimeDraft{
			PatientID: d.PatientID, UserID: userID, Category: d.Category, Activity: d.Activity, Contact: d.contactMethod(d.Category), Source: source,
			StartedAt: d.StartedAt, EndedAt: d.EndedAt, Seconds: d.Seconds, Notes: d.Notes,
		})
		return e.saveTime(tx, entry, audit.TimeEntryCreate, by, now)
	})
	return entry, err
}

// contactMethod returns the contact method sent, else the one that the activity implies for interactive time.
func (d TimeDraft) contactMethod(category string) string {
	if !d.contactSent && category == collections.Interactive {
		return cmp.Or(d.ContactMethod, contactOfActivity[d.Activity])
	}
	return d.ContactMethod
}

// saveTime stores an entry that overlaps no other time of its user or patient.
func (e *Engine) saveTime(tx core.App, entry *collections.TimeEntry, event audit.Event, by audit.Actor, now time.Time) error {
	if err := e.rejectOverlap(tx, entry); err != nil {
		return err
	}
	if err := tx.Save(entry); err != nil {
		return fmt.Errorf("store time entry: %w", err)
	}
	return audit.Append(tx, timeAudit(event, entry, by), now)
}

// findEditableTime returns an entry that may still be changed; userID "" means any user's.
func findEditableTime(tx core.App, number int64, userID string) (*collections.TimeEntry, error) {
	entry, err := collections.FindTimeEntry(tx, number)
	switch {
	case collections.IsNotFound(err) || err == nil && userID != "" && entry.UserRecordID() != userID:
		return nil, fault.Missing()
	case err != nil:
		return nil, err
	case entry.Billed():
		return nil, fault.State("invalid_state", "The time is billed and can no longer be changed.")
	}
	return entry, nil
}

// StopTimer stops a user's running timer.
func (e *Engine) StopTimer(app core.App, number int64, userID string, body TimeBody, by audit.Actor, now time.Time) (*collections.TimeEntry, error) {
	return e.updateTime(app, number, userID, by, now, func(entry *collections.TimeEntry) error {
		if !entry.Running() {
			return fault.State("invalid_state", "The timer has stopped already.")
		}
		checks := validate.NewChecks()
		validate.NotNull(checks, "started_at", body.StartedAt)
		body.StartedAt, body.EndedAt, body.Seconds = validate.String{}, validate.String{}, validate.Integer{}
		d := body.ReadChange(checks, entry, now)
		d.applyTo(entry)
		stopTimer(entry, now)
		return checks.Err()
	})
}

// stopTimer ends a timer, after an hour at the latest.
func stopTimer(entry *collections.TimeEntry, now time.Time) {
	end := now
	if latest := entry.StartedAt().Add(timerLimit); now.After(latest) {
		end = latest
		entry.SetAutoStopped()
	}
	seconds := max(1, int(end.Sub(entry.StartedAt())/time.Second))
	entry.SetSpan(entry.StartedAt(), entry.StartedAt().Add(time.Duration(seconds)*time.Second), seconds)
	entry.SetUpdatedAt(now)
}

// applyTo writes the members that were sent. The attestation is removed if more than the notes changes.
func (d TimeDraft) applyTo(entry *collections.TimeEntry) {
	before := attestedFields(entry)
	entry.Describe(d.Category, d.Activity, d.ContactMethod)
	if d.contactSent || entry.Contact() == "" {
		entry.SetContact(d.contactMethod(entry.Category()))
	}
	if d.notesSent {
		entry.SetNotes(d.Notes)
	}
	if !d.StartedAt.IsZero() {
		entry.SetSpan(d.StartedAt, d.EndedAt, d.Seconds)
	}
	if attestedFields(entry) != before {
		entry.Attest("", time.Time{})
	}
}

// attestedFields are the fields that an attestation covers.
func attestedFields(entry *collections.TimeEntry) [4]string {
	return [4]string{entry.Category(), entry.Contact(), collections.FormatInstant(entry.StartedAt()), collections.FormatInstant(entry.EndedAt())}
}

// UpdateTime changes a finished entry that is not billed; userID "" means any user's.
func (e *Engine) UpdateTime(app core.App, number int64, userID string, body TimeBody, by audit.Actor, now time.Time) (*collections.TimeEntry, error) {
	return e.updateTime(app, number, userID, by, now, func(entry *collections.TimeEntry) error {
		if entry.Running() {
			return fault.State("invalid_state", "Stop the timer first.")
		}
		checks := validate.NewChecks()
		d := body.ReadChange(checks, entry, now)
		if d.applyTo(entry); entry.Category() == collections.Interactive && entry.Notes() == "" {
			checks.Reject("notes", msgNotes)
		}
		entry.SetUpdatedAt(now)
		return checks.Err()
	})
}

// updateTime changes an editable entry in a transaction with its audit entry.
func (e *Engine) updateTime(
	app core.App, number int64, userID string, by audit.Actor, now time.Time, change func(*collections.TimeEntry) error,
) (entry *collections.TimeEntry, err error) {
	err = app.RunInTransaction(func(tx core.App) (err error) {
		if entry, err = findEditableTime(tx, number, userID); err != nil {
			return err
		}
		if err := change(entry); err != nil {
			return err
		}
		return e.saveTime(tx, entry, audit.TimeEntryUpdate, by, now)
	})
	return entry, err
}

// DeleteTime deletes an entry that is not billed; the audit trail records it.
func (e *Engine) DeleteTime(app core.App, number int64, userID string, by audit.Actor, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		entry, err := findEditableTime(tx, number, userID)
		if err != nil {
			return err
		}
		if err := collections.RemoveTimeEntry(tx, entry.Id); err != nil {
			return err
		}
		if err := audit.Append(tx, timeAudit(audit.TimeEntryDelete, entry, by), now); err != nil {
			return err
		}
		return e.Recheck(tx, entry.PatientID(), entry.StartedAt(), now)
	})
}

// StopOverdueTimers stops timers that have run for an hour.
func (e *Engine) StopOverdueTimers(app core.App, now time.Time) (stopped int, err error) {
	var unreadable []error
	err = app.RunInTransaction(func(tx core.App) error {
		timers, err := collections.TimersStartedBefore(tx, now.Add(-timerLimit))
		unreadable = nil
		for _, entry := range timers {
			if broken := collections.Readable(entry.ProxyRecord()); broken != nil {
				unreadable = append(unreadable, broken) // it stays as it is, and the others stop
				continue
			}
			entry.SetAutoStopped()
			stopTimer(entry, now)
			if err := tx.Save(entry); err != nil {
				return fmt.Errorf("stop timer: %w", err)
			}
			if err := audit.Append(tx, timeAudit(audit.TimeEntryUpdate, entry, audit.System()), now); err != nil {
				return err
			}
			stopped++
		}
		return err
	})
	return stopped, errors.Join(append(unreadable, err)...)
}

func timeAudit(event audit.Event, entry *collections.TimeEntry, by audit.Actor) audit.Entry {
	changes := audit.Changes{
		"category": {New: entry.Category()}, "duration_seconds": {New: entry.Seconds()}, "started_at": {New: collections.FormatInstant(entry.StartedAt())},
		"contact_method": {New: entry.Contact()},
	}
	if left := entry.OverlapSeconds(); left > 0 {
		changes["overlap_seconds"] = audit.Change{New: left}
	}
	return audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceTimeEntry, ResourceID: strconv.FormatInt(entry.Number(), 10), PatientID: entry.PatientID(),
		Changes: changes,
	}
}
