// Package escalations knows what needs somebody's answer: how an escalation is opened, whose it is, which state may follow
// which, when nobody answered in time, and what follows from its end (time worked, a review of the patient). Every change is
// audited and announced in the transaction that makes it. The package refuses to know who is told how, what time costs, and
// requests. What a critical reading opens by itself is stored by internal/triage, on the way of every reading.
package escalations

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
)

// Status is where an escalation stands.
type Status string

// The states of an escalation. Source: docs/decisions/escalations.md, "Escalation state machine".
const (
	StatusOpen       Status = "open"
	StatusInProgress Status = "in_progress"
	StatusResolved   Status = "resolved"
	StatusCancelled  Status = "cancelled"
)

// Closed reports whether nothing follows.
func (s Status) Closed() bool { return s == StatusResolved || s == StatusCancelled }

// Move reports whether the target may follow the state, and whether that changes anything. What is closed stays so, an
// invalid_transition fault; open is a target of nothing.
func Move(from, to Status) (changes bool, err error) {
	switch {
	case to != StatusInProgress && to != StatusResolved && to != StatusCancelled:
		return false, fault.Field("status", "Must be one of: in_progress, resolved, cancelled.")
	case from.Closed():
		return false, fault.State("invalid_transition", "The escalation is "+string(from)+" and can no longer be changed.")
	}
	return from != to, nil
}

// Draft is an escalation to open.
type Draft struct {
	PatientID  string
	Priority   triage.Priority
	Reason     phi.Text // 1 to 2000 characters
	AssignedTo string   // e-mail address; "" for the patient's primary provider
	AlertID    string   // record id of the alert it is about, or ""
	RelatedID  string   // record id of the escalation that it corrects, or ""
}

// Open stores an escalation, in the caller's transaction: the assignee is found, people are to hear of it, the patient is
// ranked anew. The patient must exist and be active.
func Open(tx core.App, draft Draft, by audit.Actor, now time.Time) (*core.Record, error) {
	record, err := collections.New(tx, collections.Escalations)
	if err != nil {
		return nil, err
	}
	record.Set("patient", draft.PatientID)
	record.Set("priority", string(draft.Priority))
	record.Set("reason", draft.Reason.Reveal())
	record.Set("assigned_to", draft.AssignedTo)
	record.Set("alert", draft.AlertID)
	record.Set("related_escalation", draft.RelatedID)
	id, err := collections.NextID(tx, collections.Escalations)
	if err != nil {
		return nil, err
	}
	record.Id = id
	return record, open(tx, record, by, now, func() error { return collections.Insert(tx, record) })
}

// open completes a new record, has it stored, and does what follows.
func open(tx core.App, record *core.Record, by audit.Actor, now time.Time, store func() error) error {
	patient, err := collections.FindPatient(tx, record.GetString("patient"))
	if collections.Missing(err) {
		return fault.Missing()
	}
	if err != nil {
		return err
	}
	if !patient.Active() {
		return fault.Field("patient_id", "This patient is archived.")
	}
	if err := checkRelated(tx, record); err != nil {
		return err
	}
	assignee, err := findAssignee(tx, record.GetString("assigned_to"), patient)
	if err != nil {
		return err
	}
	at := collections.Instant(now)
	assign(record, assignee, now)
	record.Set("status", string(StatusOpen))
	record.Set("created_by", author(by))
	record.Set("notified_at", at)
	record.Set("created_at", at)
	record.Set("updated_at", at)
	if err := store(); err != nil {
		return err
	}
	if err := note(tx, audit.EscalationCreate, record, by, nil, now); err != nil {
		return err
	}
	if err := announceOpened(tx, record, now); err != nil {
		return err
	}
	_, err = triage.Rescore(tx, patient.Id, now)
	return err
}

// checkRelated: an escalation can only correct one that exists, and of the same patient.
func checkRelated(tx core.App, record *core.Record) error {
	id := record.GetString("related_escalation")
	if id == "" {
		return nil
	}
	related, err := tx.FindRecordById(collections.Escalations, id)
	switch {
	case collections.Missing(err):
		return fault.Missing()
	case err != nil:
		return fmt.Errorf("find related escalation: %w", err)
	case related.GetString("patient") != record.GetString("patient"):
		return fault.Field("related_escalation_id", "The patient has no such escalation.")
	}
	return nil
}

// OpenBySystem opens an escalation on the system's own account, or joins the one that the system has open for the patient,
// whose priority then is at least the draft's. opened tells which.
func OpenBySystem(tx core.App, draft Draft, now time.Time) (record *core.Record, opened bool, err error) {
	current := &core.Record{}
	err = tx.RecordQuery(collections.Escalations).AndWhere(ofSystem(draft.PatientID)).One(current)
	if collections.Missing(err) {
		record, err = Open(tx, draft, audit.System(), now)
		return record, err == nil, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("find the system's escalation: %w", err)
	}
	change := Change{}
	if urgency(draft.Priority) > urgency(triage.Priority(current.GetString("priority"))) {
		change.Priority = &draft.Priority
	}
	return current, false, apply(tx, current, change, audit.System(), now)
}

func urgency(p triage.Priority) int {
	return map[triage.Priority]int{triage.Routine: 1, triage.Urgent: 2, triage.Stat: 3}[p]
}

// OfAlert opens an escalation about an alert that is not over, in one transaction, and records that on the alert too. An
// empty reason is the alert's message. The alert is attached to it, unless it belongs to one that is still open.
func OfAlert(app core.App, number int64, draft Draft, by audit.Actor, now time.Time) (record *core.Record, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		alert, err := alerts.Find(tx, number)
		if err != nil {
			return err
		}
		if _, err := alerts.Next(alerts.Status(alert.GetString("status")), alerts.Escalate); err != nil {
			return err
		}
		draft.PatientID, draft.AlertID = alert.GetString("patient"), alert.Id
		if draft.Reason == "" {
			draft.Reason = phi.Text(alert.GetString("message"))
		}
		if record, err = Open(tx, draft, by, now); err != nil {
			return err
		}
		if err := attach(tx, alert, record.Id); err != nil {
			return err
		}
		return alerts.Record(tx, alert, alerts.Action{Move: alerts.Escalate}, by, now)
	})
	return record, err
}

// Create opens an escalation in a transaction of its own.
func Create(app core.App, draft Draft, by audit.Actor, now time.Time) (record *core.Record, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		record, err = Open(tx, draft, by, now)
		return err
	})
	return record, err
}
