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

// personal are the kinds that are for one person alone: a summary of somebody's own day, or a word to the patient. Where that person has no
// account that may be used, there is nothing that anybody else would have to know.
// Source: docs/decisions/notifications.md, "Empty audience".
var personal = map[Kind]bool{ReviewsPending: true, BillingTasksPending: true, DigestReady: true, MeasureAgain: true}

// errNobody says that an announcement has no audience at all, not even administrators: it stays open until there is one.
var errNobody = errors.New("there is nobody to tell")

// orAdministrators are the people found, or the administrators where there are none: what somebody has to know is never told to nobody. It is
// the one place where that is seen to. Source: docs/decisions/notifications.md, "Empty audience".
func (r recipients) orAdministrators(people []string) ([]string, error) {
	if len(people) > 0 {
		return people, nil
	}
	return r.find("", "", authz.Admin)
}

// followers are nobody else while the owner of a follow-up can be told, and the care team once the owner has left.
func (r recipients) followers(a *collections.Announcement) ([]string, error) {
	owner, err := collections.ActiveUser(r.app, a.User)
	if err != nil || len(owner) > 0 {
		return nil, err
	}
	return r.careTeam(a)
}

// noteUnheard says at error level how many announcements wait because nobody is there to be told, when that has changed. They stay in the queue,
// whose age is a metric with an alert rule. Operators of the dashboard are not mailed: they are no staff, and a mail is no place for what happened.
func (d *Dispatcher) noteUnheard(waiting int) {
	if d.unheard.Swap(int64(waiting)) == int64(waiting) || waiting == 0 {
		return
	}
	d.Log.Error("nobody to tell: there is no active administrator", slog.Int("announcements", waiting))
}

// storeForAdministrators stores a notice for the administrators whom there are none of yet.
func storeForAdministrators(tx core.App, n Notice, now time.Time) error {
	return Announce(tx, Announcement{
		Kind: ServiceTrouble, Severity: n.Severity, Body: n.Title + ". " + n.Body,
		Key: "administrators/" + cmp.Or(n.DedupeKey, core.GenerateDefaultRandomId()),
	}, now)
}
