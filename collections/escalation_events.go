package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// EscalationEvent is one stored step of an escalation.
type EscalationEvent struct {
	ID         string `db:"id"`
	Escalation string `db:"escalation"`
	AtText     string `db:"at"`
	Event      string `db:"event"`
	User       string `db:"user"`
	Sealed     string `db:"detail"`
}

// InsertEscalationEvent stores a step without running hooks, because it may be on the path of a reading.
func InsertEscalationEvent(tx core.App, escalationID, event, by string, detail phi.Text, now time.Time) error {
	id, err := NextID(tx, EscalationEvents)
	if err != nil {
		return err
	}
	sealed := ""
	if detail != "" {
		if sealed, err = Seal(detail.Reveal(), "escalation_events.detail", id); err != nil {
			return wrap(err, "seal the step of an escalation")
		}
	}
	return insert(tx, "store the step of an escalation", EscalationEvents, dbx.Params{
		"id": id, "escalation": escalationID, "at": FormatInstant(now), "event": event, "user": by, "detail": sealed,
	})
}

// EventsOfEscalations returns the steps of escalations in order. One page of escalations may have a thousand.
func EventsOfEscalations(app core.App, ids []string) ([]EscalationEvent, error) {
	return queryAll[EscalationEvent](app, "list the steps of escalations", `SELECT id, escalation, at, event, user, detail FROM escalation_events
		WHERE escalation IN (SELECT value FROM json_each({:ids})) ORDER BY id`, dbx.Params{"ids": jsonList(ids)})
}

// At returns the time of the step.
func (e EscalationEvent) At() time.Time { return ParseInstant(e.AtText) }

// Detail returns the plain text, or [UnreadableText].
func (e EscalationEvent) Detail() phi.Text {
	if e.Sealed == "" {
		return ""
	}
	plain, err := OpenValue(e.Sealed, EscalationEvents, "detail", e.ID)
	if err != nil {
		return UnreadableText
	}
	return phi.Text(plain)
}
