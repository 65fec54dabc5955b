package notifications

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
)

// personalKinds concern one user only: a summary of the user's own day, or a prompt to the patient. Without an active account of that user there is
// no recipient, and no other user needs to be notified.
// Source: docs/decisions/notifications.md, "Empty audience".
var personalKinds = map[Kind]bool{ReviewsPending: true, BillingTasksPending: true, DigestReady: true, MeasureAgain: true, MessageForPatient: true}

// errNoAudience reports an announcement without any recipient, not even an administrator. It stays pending until there is one.
var errNoAudience = errors.New("no active user can be notified")

// orAdministrators returns the given users, or the administrators if there are none. It is the only fallback for an empty audience. Source:
// docs/decisions/notifications.md, "Empty audience".
func (r recipients) orAdministrators(people []string) ([]string, error) {
	if len(people) > 0 {
		return people, nil
	}
	return r.usersWith("", "", authz.Admin)
}

// followUpFallback returns no further recipients while the owner of a follow-up has an active account, and the care team otherwise.
func (r recipients) followUpFallback(a *collections.Announcement) ([]string, error) {
	owner, err := collections.ActiveUserIDs(r.app, a.User)
	if err != nil || len(owner) > 0 {
		return nil, err
	}
	return r.careTeam(a)
}

// logUnaddressed logs the number of announcements without a recipient when it has changed. They stay in the queue, and the age of the queue is a
// metric with an alert rule. PocketBase superusers are not mailed: they are not staff, and a mail must not contain the event.
func (d *Dispatcher) logUnaddressed(waiting int) {
	if d.unaddressed.Swap(int64(waiting)) == int64(waiting) || waiting == 0 {
		return
	}
	d.Log.Error("notification dispatcher found no active administrator; announcements wait", slog.Int("announcements", waiting))
}

// storeForAdministrators stores a notice for administrators while none exists.
func storeForAdministrators(tx core.App, n Notice, now time.Time) error {
	return Announce(tx, Announcement{
		Kind: ServiceTrouble, Severity: n.Severity, Body: n.Title + ". " + n.Body,
		Key: "administrators/" + cmp.Or(n.DedupeKey, core.GenerateDefaultRandomId()),
	}, now)
}
