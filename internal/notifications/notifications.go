// Package notifications knows how people hear of things: mails with their texts and their outbox, the entries of a person's list in the app, and
// pushes. What happened is stored as an announcement, a notice or a mail in the transaction that made it true. After the commit the dispatcher
// works out who is to hear of an announcement, puts it on their lists, plans a push for each of their devices, and sends those; the mailer
// sends the mails. Both try again when that fails, and both are swept by the clock, so that nothing depends on having been woken.
//
// Neither a mail nor a push holds health information: mailboxes and lock screens are not ours to guard. Nothing is ever sent inside a request or
// a transaction, and nothing is sent to an address that the practice has not allowed.
package notifications

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Notice is an entry for a person's list. Title and body are encrypted at rest and may name people.
type Notice struct {
	Channel  string // escalations, alerts, reminders, daily_digest
	Type     string
	Severity string // critical, warning, info, success
	Title    string // at most 200 characters
	Body     string
	// DedupeKey keeps one event from being told twice to one person; "" tells it each time.
	DedupeKey string
}

// SystemHealth is the type of notices about the service and its accounts.
const SystemHealth = "system_health"

// Notify puts a notice on a person's list. A notice that the person has already is left out.
func Notify(tx core.App, userRecordID string, n Notice, now time.Time) error {
	if n.DedupeKey != "" {
		if has, err := collections.HasNotification(tx, userRecordID, n.DedupeKey); err != nil || has {
			return err
		}
	}
	err := collections.StoreNotification(tx, collections.NotificationDraft{
		User: userRecordID, Channel: n.Channel, Type: n.Type, Severity: n.Severity, Title: n.Title, Body: phi.Text(n.Body), DedupeKey: n.DedupeKey,
	}, now)
	if err != nil {
		return err
	}
	wakeAfterCommit(tx)
	return nil
}
