package escalations

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// JoinOrOpenForMessage escalates a patient's message or questionnaire answer in the caller's transaction. It
// joins an open system escalation, raises its priority and notifies. The caller rescores.
// Source: docs/decisions/messages.md, "Replies".
func JoinOrOpenForMessage(tx core.App, draft Draft, now time.Time) (id string, err error) {
	if id, err = collections.OpenEscalationBy(tx, draft.PatientID, alerts.System); err != nil {
		return "", err
	}
	if id == "" {
		e, err := Open(tx, draft, audit.System(), now)
		if err != nil {
			return "", err
		}
		return e.Id, nil
	}
	change := Change{}
	e, err := find(tx, id)
	if err != nil {
		return "", err
	}
	if Priority(e.Priority()) == Routine {
		change.Priority = &draft.Priority
	}
	if e, _, err = Update(tx, collections.Number(id), change, audit.System(), now); err != nil {
		return "", err
	}
	if err := recordSystemEvent(tx, id, eventTextJoined, draft.Reason.Reveal(), now); err != nil {
		return "", err
	}
	e.SetNotifiedAt(now)
	if err := e.Store(tx); err != nil {
		return "", err
	}
	return id, announceMessage(tx, e, draft, now)
}

// announceMessage notifies users that a message joined an escalation.
func announceMessage(tx core.App, e *collections.Escalation, draft Draft, now time.Time) error {
	label, err := collections.PatientLabel(tx, e.PatientID())
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EscalationOpened, Severity: severities[Priority(e.Priority())], PatientID: e.PatientID(), EscalationID: e.Id, AtOnce: true,
		Key: "escalation " + e.Id + " text " + collections.FormatInstant(now), Body: label + ", " + e.Priority() + ": " + draft.Reason.Reveal(),
	}, now)
}
