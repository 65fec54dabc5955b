package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

const announcementBody = "announcements.body"

// Announcement is one entry of the outbox of what people are to hear.
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
	CreatedAt  string `db:"created_at"`
}

// Body is opened.
func (a *Announcement) Body() (phi.Text, error) {
	plain, err := OpenValue(a.Sealed, Announcements, "body", a.ID)
	return phi.Text(plain), err
}

// InsertAnnouncement stores one and reports whether its key was new. told is when people heard of it; zero for not yet.
func InsertAnnouncement(tx core.App, a Announcement, body phi.Text, told, now time.Time) (stored bool, err error) {
	id := core.GenerateDefaultRandomId()
	sealed, err := Seal(body.Reveal(), announcementBody, id)
	if err != nil {
		return false, fmt.Errorf("seal announcement: %w", err)
	}
	n, err := change(tx, "store announcement", `INSERT INTO announcements
			(id, kind, severity, patient, alert, escalation, billing_entry, user, key, body, created_at, told_at)
		VALUES ({:id}, {:kind}, {:severity}, {:patient}, {:alert}, {:escalation}, {:entry}, {:user}, {:key}, {:body}, {:at}, {:told})
		ON CONFLICT (key) DO NOTHING`, dbx.Params{
		"id": id, "kind": a.Kind, "severity": a.Severity, "patient": a.Patient, "alert": a.Alert, "escalation": a.Escalation,
		"entry": a.Entry, "user": a.User, "key": a.Key, "body": sealed, "at": Instant(now), "told": Instant(told),
	})
	return n == 1, err
}

// OpenAnnouncements are those nobody has been told of, oldest first, after the given one.
func OpenAnnouncements(app core.App, after *Announcement, limit int) (open []*Announcement, err error) {
	query := app.DB().Select("id", "kind", "severity", "patient", "alert", "escalation", "billing_entry", "user", "key", "body", "created_at").
		From(Announcements).Where(dbx.NewExp("told_at = ''")).OrderBy("created_at", "id").Limit(int64(limit))
	if after != nil {
		query.AndWhere(dbx.NewExp("(created_at, id) > ({:at}, {:id})", dbx.Params{"at": after.CreatedAt, "id": after.ID}))
	}
	if err := query.All(&open); err != nil {
		return nil, fmt.Errorf("find announcements: %w", err)
	}
	return open, nil
}

// CloseAnnouncement notes that people have been told.
func CloseAnnouncement(tx core.App, id string, now time.Time) error {
	return update(tx, "close announcement", Announcements, dbx.Params{"told_at": Instant(now)}, dbx.HashExp{"id": id})
}

// Announced reports whether there is an announcement with the key.
func Announced(app core.App, key string) (bool, error) {
	var n int
	err := app.DB().NewQuery(`SELECT COUNT(*) FROM announcements WHERE key = {:key}`).Bind(dbx.Params{"key": key}).Row(&n)
	return n > 0, wrap(err, "find announcement")
}

// AnnouncementTold is when people heard of what was announced under a key; zero for not yet.
func AnnouncementTold(app core.App, key string) (time.Time, error) {
	var told string
	err := app.DB().NewQuery(`SELECT told_at FROM announcements WHERE key = {:key} AND told_at != ''`).Bind(dbx.Params{"key": key}).Row(&told)
	return ParseInstant(told), wrap(unlessMissing(err), "find announcement")
}
