// Package escalations opens, assigns, changes and closes escalations, climbs the ladder of those that no one takes in time, and defines who
// is on call. Every change is audited and announced in its own transaction. Scores, billing and delivery of notifications are elsewhere:
// internal/triage rescores the patient after a change. The rules are in docs/decisions/escalations.md.
package escalations

import (
	"slices"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Priority is how quickly an escalation needs a response.
type Priority string

// The escalation priorities of the contract.
const (
	Routine Priority = "routine"
	Urgent  Priority = "urgent"
	Stat    Priority = "stat"
)

// Status is the state of an escalation.
type Status string

// The states of an escalation. Source: docs/decisions/escalations.md, "Escalation state machine".
const (
	StatusOpen       Status = "open"
	StatusInProgress Status = "in_progress"
	StatusResolved   Status = "resolved"
	StatusCancelled  Status = "cancelled"
)

// IsClosed reports whether the status is final.
func (s Status) IsClosed() bool { return s == StatusResolved || s == StatusCancelled }

// CanChangeStatus reports whether the status may change to the target, and whether that changes anything. A closed escalation is an
// invalid_transition fault, and open is never a target.
func CanChangeStatus(from, to Status) (changes bool, err error) {
	switch {
	case to != StatusInProgress && to != StatusResolved && to != StatusCancelled:
		return false, fault.Field("status", "Must be one of: in_progress, resolved, cancelled.")
	case from.IsClosed():
		return false, fault.State("invalid_transition", "The escalation is "+string(from)+" and can no longer be changed.")
	}
	return from != to, nil
}

// Draft is an escalation to open.
type Draft struct {
	PatientID  string
	Priority   Priority
	Reason     phi.Text // 1 to 2000 characters; shown next to the patient's name
	AssignedTo string   // e-mail address; "" for the patient's primary provider
	AlertID    string   // record id of the alert it is about, or ""
	RelatedID  string   // record id of the escalation that it corrects, or ""
}

// Find returns an escalation by its public number, or a not-found fault.
func Find(app core.App, number int64) (*collections.Escalation, error) {
	e, err := find(app, collections.NumberID(number))
	if err != nil {
		return nil, err
	}
	return e, collections.Readable(e.ProxyRecord())
}

func find(app core.App, id string) (*collections.Escalation, error) {
	e, err := collections.FindEscalation(app, id)
	return e, fault.OrMissing(err)
}

// Open stores an escalation opened by a user, assigns and announces it, in the caller's transaction. The patient must exist and be active.
func Open(tx core.App, draft Draft, by audit.Actor, now time.Time) (*collections.Escalation, error) {
	e, err := collections.NewEscalation(tx)
	if err != nil {
		return nil, err
	}
	e.SetSubject(draft.PatientID, string(draft.Priority), draft.Reason, draft.AlertID, draft.RelatedID)
	e.Assign(draft.AssignedTo, now)
	return e, openRecord(tx, e, by, now, func() error { return collections.Insert(tx, e.ProxyRecord()) })
}

// openRecord completes a new record, stores and announces it.
func openRecord(tx core.App, e *collections.Escalation, by audit.Actor, now time.Time, store func() error) error {
	patient, err := collections.FindPatient(tx, e.PatientID())
	if err != nil {
		return fault.OrMissing(err)
	}
	if !patient.Active() {
		return fault.Field("patient_id", "This patient is archived.")
	}
	if id := e.RelatedID(); id != "" {
		related, err := find(tx, id)
		if err != nil {
			return err
		}
		if related.PatientID() != patient.Id {
			return fault.Field("related_escalation_id", "The patient has no such escalation.")
		}
	}
	assignee, err := findAssignee(tx, e.AssignedTo(), patient)
	if err != nil {
		return err
	}
	e.Assign("", now)
	if assignee != nil {
		e.Assign(assignee.Email(), now)
	}
	e.Open(alerts.ActorName(by), now)
	if err := store(); err != nil {
		return err
	}
	if err := auditEscalation(tx, audit.EscalationCreate, e.Id, e.PatientID(), by, nil, now); err != nil {
		return err
	}
	return announce(tx, e, notifications.EscalationOpened, "", "", now)
}

// OpenForAlert opens an escalation about an open alert, and audits that on the alert too, in the caller's transaction. An empty reason
// becomes the alert's message. The alert is attached to it, unless it belongs to another open escalation.
func OpenForAlert(tx core.App, number int64, draft Draft, by audit.Actor, now time.Time) (*collections.Escalation, error) {
	alert, err := alerts.Find(tx, number)
	if err != nil {
		return nil, err
	}
	if _, err := alerts.NextStatus(alerts.Status(alert.Status()), alerts.Escalate); err != nil {
		return nil, err
	}
	draft.PatientID, draft.AlertID = alert.PatientID(), alert.Id
	if draft.Reason == "" {
		draft.Reason = alert.Message()
	}
	e, err := Open(tx, draft, by, now)
	if err != nil {
		return nil, err
	}
	attachTo := e.Id
	if id := alert.EscalationID(); id != "" {
		current, err := collections.FindEscalation(tx, id)
		if err != nil && !collections.IsNotFound(err) {
			return nil, err
		}
		if err == nil && !Status(current.Status()).IsClosed() {
			attachTo = ""
		}
	}
	return e, alerts.Attach(tx, alert, attachTo, by, now)
}

// AlertIDsByEscalation returns the record ids of the alerts of escalations, by escalation and in order: the one it is about, then those attached.
func AlertIDsByEscalation(app core.App, page ...*collections.Escalation) (map[string][]string, error) {
	ids := make([]string, len(page))
	for i, e := range page {
		ids[i] = e.Id
	}
	attached, err := collections.AlertIDsOfEscalations(app, ids)
	if err != nil {
		return nil, err
	}
	for _, e := range page {
		if about := e.AlertID(); about != "" {
			others := slices.DeleteFunc(attached[e.Id], func(id string) bool { return id == about })
			attached[e.Id] = append([]string{about}, others...)
		}
	}
	return attached, nil
}

// auditEscalation appends the audit entry of an escalation.
func auditEscalation(tx core.App, event audit.Event, id, patientID string, by audit.Actor, changes audit.Changes, now time.Time) error {
	return audit.Append(tx, audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceEscalation, ResourceID: strconv.FormatInt(collections.Number(id), 10),
		PatientID: patientID, Changes: changes,
	}, now)
}

// severities of announcements, by priority.
var severities = map[Priority]string{Routine: "info", Urgent: "warning", Stat: "critical"}

// announce notifies of an escalation. The text names the patient and the reason, since users read it away from the list.
func announce(tx core.App, e *collections.Escalation, kind notifications.Kind, userID, key string, now time.Time) error {
	label, err := collections.PatientLabel(tx, e.PatientID())
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: kind, Severity: severities[Priority(e.Priority())], PatientID: e.PatientID(), EscalationID: e.Id, AlertID: e.AlertID(), UserID: userID,
		Key: "escalation " + e.Id + key, Body: label + ", " + e.Priority() + ": " + e.DisplayReason(),
	}, now)
}
