package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// EscalationEvent is one step of an escalation.
type EscalationEvent struct{ core.BaseRecordProxy }

// InsertEscalationEvent stores a step of an escalation, past the hooks. It may be one of those on the way of a reading.
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
		"id": id, "escalation": escalationID, "at": Instant(now), "event": event, "user": by, "detail": sealed,
	})
}

// EventsOfEscalations are the steps of escalations, in the order in which they happened.
func EventsOfEscalations(app core.App, ids []string) ([]*EscalationEvent, error) {
	return listOf[EscalationEvent](app, EscalationEvents, AnyOf("escalation", ids), "id")
}

func (e *EscalationEvent) EscalationID() string { return e.GetString("escalation") }
func (e *EscalationEvent) At() time.Time        { return instantOf(e, "at") }
func (e *EscalationEvent) Event() string        { return e.GetString("event") }
func (e *EscalationEvent) User() string         { return e.GetString("user") }
func (e *EscalationEvent) Detail() string       { return TextOf(e.ProxyRecord(), "detail") } // opened
