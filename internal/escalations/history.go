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

// Event is one step in the history of an escalation.
type Event struct {
	At time.Time
	// Name is opened, assigned, in_progress, priority, note, alert_joined, text_joined, overdue, tier_1, tier_2, tier_3, handed_over, reminded, resolved or cancelled.
	Name string
	// User is an e-mail address or system.
	User   string
	Detail phi.Text
}

// The stored steps. Opening and closing are columns of the escalation itself.
const (
	eventAssigned   = "assigned"
	eventInProgress = "in_progress"
	eventPriority   = "priority"
	eventNote       = "note"
	eventJoined     = "alert_joined"
	eventTextJoined = "text_joined"
	eventOverdue    = "overdue"
	eventHandedOver = "handed_over"
	eventReminded   = "reminded"
)

// eventTiers are the ladder's steps, by tier.
var eventTiers = [...]string{"", "tier_1", "tier_2", "tier_3"}

// Histories returns the steps of escalations, by record id and in order.
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

// recordSystemEvent stores a step of the system.
func recordSystemEvent(tx core.App, id, event, detail string, now time.Time) error {
	return collections.InsertEscalationEvent(tx, id, event, alerts.System, phi.Text(detail), now)
}

// priorState is an escalation's state before a user's change.
type priorState struct {
	status   Status
	priority Priority
	assignee string
}

func stateOf(e *collections.Escalation) priorState {
	return priorState{Status(e.Status()), Priority(e.Priority()), e.AssignedTo()}
}

// updateDeadlines restarts the ladder's deadlines if the escalation became more urgent or lost its assignee while in progress. The time for
// a note starts with the work, with each note and with a new assignee.
func (s priorState) updateDeadlines(e *collections.Escalation, change Change, now time.Time) {
	is := stateOf(e)
	taken := func(at priorState) bool { return at.status == StatusInProgress && at.assignee != "" }
	if urgency[is.priority] > urgency[s.priority] || taken(s) && is.status == StatusInProgress && !taken(is) {
		e.RestartDeadlines(now)
	}
	if change.Note != "" || taken(is) && (!taken(s) || is.assignee != s.assignee) {
		e.SetNotedAt(now)
	}
}

// urgency orders the priorities.
var urgency = map[Priority]int{Routine: 1, Urgent: 2, Stat: 3}

// recordEvents stores the steps of a change.
func (s priorState) recordEvents(tx core.App, e *collections.Escalation, change Change, by audit.Actor, now time.Time) error {
	is := stateOf(e)
	var steps []Event
	if is.assignee != s.assignee {
		steps = append(steps, Event{Name: eventAssigned, Detail: fromTo(cmp.Or(s.assignee, "nobody"), cmp.Or(is.assignee, "nobody"))})
	}
	if is.priority != s.priority {
		steps = append(steps, Event{Name: eventPriority, Detail: fromTo(string(s.priority), string(is.priority))})
	}
	if is.status != s.status && is.status == StatusInProgress {
		steps = append(steps, Event{Name: eventInProgress})
	}
	if change.Note != "" {
		steps = append(steps, Event{Name: eventNote, Detail: change.Note})
	}
	for _, step := range steps {
		if err := collections.InsertEscalationEvent(tx, e.Id, step.Name, alerts.ActorName(by), step.Detail, now); err != nil {
			return err
		}
	}
	return nil
}

func fromTo(before, after string) phi.Text { return phi.Text("From " + before + " to " + after + ".") }
