package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Categories and sources of time entries.
const (
	Interactive    = "interactive"
	ReviewTime     = "review"
	Interpretation = "interpretation"
	CareManagement = "care_management"

	TimeByHand     = "manual"
	TimeByTimer    = "timer"
	TimeEscalation = "escalation"
)

// TimeEntry is a span of a user's work for a patient.
type TimeEntry struct{ patientRecord }

// AsTimeEntry converts a record of the time entries collection.
func AsTimeEntry(record *core.Record) *TimeEntry { return as[TimeEntry](record) }

// NewTimeEntry returns an unsaved entry with the next number.
func NewTimeEntry(app core.App, now time.Time) (*TimeEntry, error) {
	return newRecord[TimeEntry](app, TimeEntries, map[string]any{"created_at": FormatInstant(now), "updated_at": FormatInstant(now)})
}

// FindTimeEntry finds an entry by number.
func FindTimeEntry(app core.App, number int64) (*TimeEntry, error) {
	return findReadable[TimeEntry](app, TimeEntries, dbx.HashExp{"id": NumberID(number)})
}

// RunningTimer finds a user's running timer.
func RunningTimer(app core.App, userID string) (*TimeEntry, error) {
	return findReadable[TimeEntry](app, TimeEntries, dbx.HashExp{"user": userID, "ended_at": ""})
}

// TimersStartedBefore lists timers running since before a moment.
func TimersStartedBefore(app core.App, moment time.Time) ([]*TimeEntry, error) {
	return listOf[TimeEntry](app, TimeEntries, dbx.NewExp("ended_at = '' AND started_at <= {:at}", dbx.Params{"at": FormatInstant(moment)}))
}

// TimeFilter selects time entries; zero members do not narrow.
type TimeFilter struct {
	From, To                    time.Time // start, both inclusive
	MonthStart, MonthEnd        time.Time // start, end exclusive
	PatientID, Category, UserID string
	Own                         string // the only user with listed time
}

// PageOfTimeEntries returns a page of matching entries, newest first, and the total.
func PageOfTimeEntries(app core.App, f TimeFilter, offset, limit int) (page []*TimeEntry, total int, err error) {
	where := Conditions{}.Between("started_at", f.From, f.To).Equal("patient", f.PatientID).Equal("category", f.Category).Equal("user", f.UserID)
	if !f.MonthStart.IsZero() {
		where = append(where, dbx.NewExp("started_at >= {:m0} AND started_at < {:m1}", dbx.Params{"m0": FormatInstant(f.MonthStart), "m1": FormatInstant(f.MonthEnd)}))
	}
	if f.Own != "" {
		where = append(where, dbx.NewExp("user = {:me}", dbx.Params{"me": f.Own}))
	}
	return pageOf[TimeEntry](app, TimeEntries, AllOf(where), []string{"started_at DESC", "id DESC"}, offset, limit)
}

func (e *TimeEntry) Number() int64        { return Number(e.Id) }
func (e *TimeEntry) UserRecordID() string { return e.GetString("user") }
func (e *TimeEntry) Category() string     { return e.GetString("category") }
func (e *TimeEntry) Notes() phi.Text      { return phi.Text(e.GetString("notes")) }
func (e *TimeEntry) StartedAt() time.Time { return instantOf(e, "started_at") }
func (e *TimeEntry) EndedAt() time.Time   { return instantOf(e, "ended_at") }
func (e *TimeEntry) Running() bool        { return e.GetString("ended_at") == "" }
func (e *TimeEntry) Billed() bool         { return e.EntryID() != "" }
func (e *TimeEntry) Activity() string     { return e.GetString("activity") }
func (e *TimeEntry) Contact() string      { return e.GetString("contact_method") }
func (e *TimeEntry) Source() string       { return e.GetString("source") }
func (e *TimeEntry) AutoStopped() bool    { return e.GetBool("auto_stopped") }
func (e *TimeEntry) EntryID() string      { return e.GetString("billing_entry") }
func (e *TimeEntry) EscalationID() string { return e.GetString("escalation") }
func (e *TimeEntry) Seconds() int         { return e.GetInt("duration_seconds") }

func (e *TimeEntry) AttestedBy() string    { return e.GetString("attested_by") }
func (e *TimeEntry) AttestedAt() time.Time { return instantOf(e, "attested_at") }
func (e *TimeEntry) OverlapSeconds() int   { return e.GetInt("overlap_seconds") }

// NeedsAttestation reports whether a user must attest that the time was live contact: the duration of an escalation does not prove it.
func (e *TimeEntry) NeedsAttestation() bool {
	return e.Category() == Interactive && e.Source() == TimeEscalation && e.AttestedAt().IsZero()
}

// Attest records who attested the time, and when; "" clears both.
func (e *TimeEntry) Attest(by string, at time.Time) {
	if by == "" {
		at = time.Time{}
	}
	e.Set("attested_by", by)
	e.Set("attested_at", FormatInstant(at))
}

func (e *TimeEntry) SetContact(method string)   { e.Set("contact_method", method) }
func (e *TimeEntry) SetOverlapSeconds(left int) { e.Set("overlap_seconds", left) }

// TimeDraft is the content of a new time entry.
type TimeDraft struct {
	PatientID, UserID, Category, Activity, Contact, Source, EscalationID string
	StartedAt, EndedAt                                                   time.Time
	Seconds                                                              int
	Notes                                                                phi.Text
}

// Fill writes a draft into the entry.
func (e *TimeEntry) Fill(d TimeDraft) {
	e.Set("patient", d.PatientID)
	e.Set("user", d.UserID)
	e.Set("source", d.Source)
	e.Set("escalation", d.EscalationID)
	e.Describe(d.Category, d.Activity, d.Contact)
	e.SetSpan(d.StartedAt, d.EndedAt, d.Seconds)
	e.SetNotes(d.Notes)
}

// KeepAuthorRole sets the role and credential that the user has now.
func (e *TimeEntry) KeepAuthorRole(app core.App) error {
	user, err := FindUser(app, e.UserRecordID())
	if err != nil {
		return err
	}
	e.Set("user_role", user.Role())
	e.Set("user_credential", user.Credential())
	return nil
}

// Describe sets category, activity and contact method; "" keeps the stored value.
func (e *TimeEntry) Describe(category, activity, contact string) {
	for column, value := range map[string]string{"category": category, "activity": activity, "contact_method": contact} {
		if value != "" {
			e.Set(column, value)
		}
	}
}

// SetSpan sets start, end and duration.
func (e *TimeEntry) SetSpan(from, to time.Time, seconds int) {
	e.Set("started_at", FormatInstant(from))
	e.Set("ended_at", FormatInstant(to))
	e.Set("duration_seconds", seconds)
}

func (e *TimeEntry) SetNotes(notes phi.Text)   { e.Set("notes", notes.Reveal()) }
func (e *TimeEntry) SetAutoStopped()           { e.Set("auto_stopped", true) }
func (e *TimeEntry) SetUpdatedAt(at time.Time) { e.Set("updated_at", FormatInstant(at)) }

// RemoveTimeEntry deletes an entry.
func RemoveTimeEntry(tx core.App, id string) error {
	return remove(tx, "delete time entry", TimeEntries, dbx.HashExp{"id": id})
}
