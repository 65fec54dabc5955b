package alerts

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// Step is one line of an alert's audit trail.
type Step struct {
	Action string // created, notified, acknowledged, note_added, escalated, resolved, auto_resolved
	At     time.Time
	Actor  string // e-mail address or system
	Detail string // outcome or note; "" for none
}

// steps names what the trail shows of the audit log. Source: docs/decisions/alerts.md, "Acknowledge variants".
var steps = map[audit.Event]string{
	audit.AlertCreate: "created", audit.AlertAcknowledge: "acknowledged", audit.AlertNote: "note_added",
	audit.AlertEscalate: "escalated", audit.AlertResolve: "resolved", audit.AlertAutoResolve: "auto_resolved",
}

// AnnouncementKey makes the announcement of an alert one; the trail finds by it when people were told.
func AnnouncementKey(alertID string) string { return "alert " + alertID }

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
	told, err := collections.AnnouncementTold(app, AnnouncementKey(alertID))
	if err == nil && !told.IsZero() {
		trail = append(trail, Step{Action: "notified", At: told, Actor: System})
		slices.SortStableFunc(trail, func(a, b Step) int { return cmp.Compare(a.At.UnixMicro(), b.At.UnixMicro()) })
	}
	return trail, err
}
