// Package notifications knows how people hear of things: mails with their texts and their outbox, the entries of a person's list in the app, and
// pushes. What happened is stored as an announcement, a notice or a mail in the transaction that made it true. After the commit the dispatcher
// works out who is to hear of an announcement, puts it on their lists, plans a push for each of their devices, and sends those; the mailer
// sends the mails. Both try again when that fails, and both are swept by the clock, so that nothing depends on having been woken.
//
// Neither a mail nor a push holds health information: mailboxes and lock screens are not ours to guard. Nothing is ever sent inside a request or
// a transaction, and nothing is sent to an address that the practice has not allowed.
package notifications

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
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
		_, err := tx.FindFirstRecordByFilter(collections.Notifications, "user = {:user} && dedupe_key = {:key}",
			map[string]any{"user": userRecordID, "key": n.DedupeKey})
		if err == nil || !collections.Missing(err) {
			return err
		}
	}
	entry, err := collections.NewNotification(tx, userRecordID, now)
	if err != nil {
		return err
	}
	entry.Set("channel", n.Channel)
	entry.Set("type", n.Type)
	entry.Set("severity", n.Severity)
	entry.Set("title", n.Title)
	entry.Set("body", n.Body)
	entry.Set("dedupe_key", n.DedupeKey)
	if err := tx.Save(entry); err != nil {
		return fmt.Errorf("store notification: %w", err)
	}
	wakeAfterCommit(tx)
	return nil
}
