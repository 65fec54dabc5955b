package escalations

import (
	"cmp"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Event is one step of an escalation.
type Event struct {
	At time.Time
	// Name is opened, assigned, in_progress, priority, note, alert_joined, overdue, tier_1, tier_2, tier_3, handed_over, reminded, resolved or cancelled.
	Name string
	// User is an e-mail address or system.
	User   string
	Detail phi.Text
}

// The steps that are stored. How an escalation was opened and ended stands in its own row, whoever did it.
const (
	eventAssigned   = "assigned"
	eventInProgress = "in_progress"
	eventPriority   = "priority"
	eventNote       = "note"
	eventJoined     = "alert_joined"
	eventOverdue    = "overdue"
	eventHandedOver = "handed_over"
	eventReminded   = "reminded"
)

// eventTiers are the steps of the ladder, by tier.
var eventTiers = [...]string{"", "tier_1", "tier_2", "tier_3"}

// Histories are the steps of escalations, by record id and in order.
func Histories(app core.App, page ...*collections.Escalation) (map[string][]Event, error) {
	ids := make([]string, len(page))
	histories := make(map[string][]Event, len(page))
	for i, e := range page {
		ids[i] = e.Id
		histories[e.Id] = []Event{{At: e.CreatedAt(), Name: "opened", User: e.CreatedBy()}}
	}
	stored, err := collections.EventsOfEscalations(app, ids)
	if err != nil {
		return nil, err
	}
	for _, step := range stored {
		histories[step.Escalation] = append(histories[step.Escalation], Event{step.At(), step.Event, step.User, step.Detail()})
	}
	for _, e := range page {
		if at := e.ResolvedAt(); !at.IsZero() {
			histories[e.Id] = append(histories[e.Id], Event{At: at, Name: string(StatusResolved), User: e.ResolvedBy()})
		}
		if at := e.CancelledAt(); !at.IsZero() {
			histories[e.Id] = append(histories[e.Id], Event{At: at, Name: string(StatusCancelled), User: e.CancelledBy()})
		}
	}
	return histories, nil
}

// remember stores a step that the system made.
func remember(tx core.App, id, event, detail string, now time.Time) error {
	return collections.InsertEscalationEvent(tx, id, event, alerts.System, phi.Text(detail), now)
}

// was is how an escalation stood before a change by a person.
type was struct {
	status   Status
	priority Priority
	assignee string
}

func situation(e *collections.Escalation) was {
	return was{Status(e.Status()), Priority(e.Priority()), e.AssignedTo()}
}

// follow sets what follows of a change for the deadlines: they begin anew for one that became more urgent, and for one that somebody had taken and
// has no more; the time for a note begins with the work, with each note and when the work changes hands.
func (w was) follow(e *collections.Escalation, change Change, now time.Time) {
	is := situation(e)
	taken := func(at was) bool { return at.status == StatusInProgress && at.assignee != "" }
	if urgency[is.priority] > urgency[w.priority] || taken(w) && is.status == StatusInProgress && !taken(is) {
		e.WaitAnew(now)
	}
	if change.Note != "" || taken(is) && (!taken(w) || is.assignee != w.assignee) {
		e.SetNotedAt(now)
	}
}

// urgency orders the priorities.
var urgency = map[Priority]int{Routine: 1, Urgent: 2, Stat: 3}

// remember stores the steps that a change was. How it ended stands in its own row.
func (w was) remember(tx core.App, e *collections.Escalation, change Change, by audit.Actor, now time.Time) error {
	is := situation(e)
	var steps []Event
	if is.assignee != w.assignee {
		steps = append(steps, Event{Name: eventAssigned, Detail: fromTo(cmp.Or(w.assignee, "nobody"), cmp.Or(is.assignee, "nobody"))})
	}
	if is.priority != w.priority {
		steps = append(steps, Event{Name: eventPriority, Detail: fromTo(string(w.priority), string(is.priority))})
	}
	if is.status != w.status && is.status == StatusInProgress {
		steps = append(steps, Event{Name: eventInProgress})
	}
	if change.Note != "" {
		steps = append(steps, Event{Name: eventNote, Detail: change.Note})
	}
	for _, step := range steps {
		if err := collections.InsertEscalationEvent(tx, e.Id, step.Name, author(by), step.Detail, now); err != nil {
			return err
		}
	}
	return nil
}

func fromTo(before, after string) phi.Text { return phi.Text("From " + before + " to " + after + ".") }
