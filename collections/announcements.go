package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

const announcementBody = "announcements.body"

// Announcement is one entry of the outbox of notifications.
type Announcement struct {
	ID         string `db:"id"`
	Kind       string `db:"kind"`
	Severity   string `db:"severity"`
	Patient    string `db:"patient"`
	Alert      string `db:"alert"`
	Escalation string `db:"escalation"`
	Entry      string `db:"billing_entry"`
	User       string `db:"user"`
	Key        string `db:"key"`
	Sealed     string `db:"body"`
	AtOnce     bool   `db:"at_once"`
	CreatedAt  string `db:"created_at"`
}

// Body returns the opened text.
func (a *Announcement) Body() (phi.Text, error) {
	plain, err := OpenValue(a.Sealed, Announcements, "body", a.ID)
	return phi.Text(plain), err
}

// InsertAnnouncement stores an announcement and reports whether its key was new. notified is when users were notified, or zero.
func InsertAnnouncement(tx core.App, a Announcement, body phi.Text, notified, now time.Time) (stored bool, err error) {
	id := core.GenerateDefaultRandomId()
	sealed, err := Seal(body.Reveal(), announcementBody, id)
	if err != nil {
		return false, fmt.Errorf("seal announcement: %w", err)
	}
	n, err := Write(tx, `INSERT INTO announcements
			(id, kind, severity, patient, alert, escalation, billing_entry, user, key, body, at_once, created_at, told_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING`,
		id, a.Kind, a.Severity, a.Patient, a.Alert, a.Escalation, a.Entry, a.User, a.Key, sealed, a.AtOnce, FormatInstant(now), FormatInstant(notified))
	return n == 1, wrap(err, "store announcement")
}

// PendingAnnouncements returns announcements that have not been sent to their users, oldest first, after the given one.
func PendingAnnouncements(app core.App, after *Announcement, limit int) (open []*Announcement, err error) {
	query := app.DB().Select("id", "kind", "severity", "patient", "alert", "escalation", "billing_entry", "user", "key", "body", "at_once", "created_at").
		From(Announcements).Where(dbx.NewExp("told_at = ''")).OrderBy("created_at", "id").Limit(int64(limit))
	if after != nil {
		query.AndWhere(dbx.NewExp("(created_at, id) > ({:at}, {:id})", dbx.Params{"at": after.CreatedAt, "id": after.ID}))
	}
	err = query.All(&open)
	return open, wrap(err, "find announcements")
}

// CloseAnnouncement records that users have been notified.
func CloseAnnouncement(tx core.App, id string, now time.Time) error {
	_, err := Write(tx, `UPDATE announcements SET told_at = ? WHERE id = ?`, FormatInstant(now), id)
	return wrap(err, "close announcement")
}

// Announced reports whether there is an announcement with the key.
func Announced(app core.App, key string) (bool, error) {
	return queryValue[bool](app, "find announcement", `SELECT EXISTS (SELECT 1 FROM announcements WHERE key = {:key})`, dbx.Params{"key": key})
}

// AnnouncementTimes returns when users were notified of announcements with a key or a key prefix, in order.
func AnnouncementTimes(app core.App, key, prefix string) (times []time.Time, err error) {
	found, err := queryColumn[string](app, "find announcements", `SELECT told_at FROM announcements
		WHERE (key = {:key} OR key >= {:prefix} AND key < {:end}) AND told_at != '' ORDER BY told_at`,
		dbx.Params{"key": key, "prefix": prefix, "end": prefix + "~"})
	for _, at := range found {
		times = append(times, ParseInstant(at))
	}
	return times, err
}
