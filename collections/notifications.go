package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Notification is one entry of a person's list. Title and body are encrypted.
type Notification struct{ core.BaseRecordProxy }

// NewNotification returns an unsaved notification for a user, with the next number, due now.
func NewNotification(app core.App, userID string, now time.Time) (*Notification, error) {
	record, err := New(app, Notifications)
	if err != nil {
		return nil, err
	}
	if record.Id, err = NextID(app, Notifications); err != nil {
		return nil, err
	}
	n := &Notification{}
	n.SetProxyRecord(record)
	n.Set("user", userID)
	n.Set("in_app", true)
	n.Set("due_at", Instant(now))
	n.Set("created_at", Instant(now))
	return n, nil
}

// NotificationDraft is a notification to store.
type NotificationDraft struct {
	User, Channel, Type, Severity                string
	Title                                        string
	Body                                         phi.Text
	Patient, Alert, Escalation, Entry, DedupeKey string
	InApp                                        bool
}

// InsertNotification stores a notification unless the person has one with the same key.
func InsertNotification(tx core.App, d NotificationDraft, now time.Time) error {
	id, err := NextID(tx, Notifications)
	if err != nil {
		return err
	}
	title, err := Seal(d.Title, "notifications.title", id)
	if err != nil {
		return fmt.Errorf("seal notification: %w", err)
	}
	body, err := Seal(d.Body.Reveal(), "notifications.body", id)
	if err != nil {
		return fmt.Errorf("seal notification: %w", err)
	}
	_, err = tx.NonconcurrentDB().NewQuery(`INSERT INTO notifications (id, user, channel, type, severity, title, body, patient, alert,
			escalation, billing_entry, dedupe_key, in_app, due_at, dispatched_at, read_at, created_at)
		VALUES ({:id}, {:user}, {:channel}, {:type}, {:severity}, {:title}, {:body}, {:patient}, {:alert},
			{:escalation}, {:entry}, {:key}, {:inApp}, {:at}, '', '', {:at})
		ON CONFLICT (user, dedupe_key) WHERE dedupe_key != '' DO NOTHING`).Bind(dbx.Params{
		"id": id, "user": d.User, "channel": d.Channel, "type": d.Type, "severity": d.Severity, "title": title, "body": body,
		"patient": d.Patient, "alert": d.Alert, "escalation": d.Escalation, "entry": d.Entry, "key": d.DedupeKey, "inApp": d.InApp,
		"at": Instant(now),
	}).Execute()
	if err != nil {
		return fmt.Errorf("store notification: %w", err)
	}
	return nil
}

// UnplannedNotification is one whose pushes nobody has planned yet.
type UnplannedNotification struct {
	ID       string `db:"id"`
	User     string `db:"user"`
	Channel  string `db:"channel"`
	Type     string `db:"type"`
	Severity string `db:"severity"`
	Patient  string `db:"patient"`
	Alert    string `db:"alert"`
	// Yours is true for the patient's primary provider and the escalation's assignee.
	Yours bool `db:"yours"`
}

// UnplannedNotifications are due and without plan: those about escalations first, since their pushes speak for alerts, then oldest first.
func UnplannedNotifications(app core.App, now time.Time, limit int) (list []UnplannedNotification, err error) {
	err = app.NonconcurrentDB().NewQuery(`SELECT n.id, n.user, n.channel, n.type, n.severity, n.patient, n.alert,
			COALESCE((SELECT primary_provider FROM patients WHERE id = n.patient) = n.user, FALSE) OR
			COALESCE((SELECT assigned_to FROM escalations WHERE id = n.escalation) = (SELECT email FROM users WHERE id = n.user), FALSE) AS yours
		FROM notifications n WHERE n.id IN (SELECT id FROM notifications WHERE dispatched_at = '' AND due_at <= {:now}
			ORDER BY channel != 'escalations', due_at, id LIMIT +{:limit}) ORDER BY n.channel != 'escalations', n.due_at, n.id`).
		Bind(dbx.Params{"now": Instant(now), "limit": limit}).All(&list)
	if err != nil {
		return nil, fmt.Errorf("find notifications to plan: %w", err)
	}
	return list, nil
}

// toldTogether is how far apart the notifications of one event may have been stored.
const toldTogether = time.Hour

// betweenAlerts is how long the push about an alert speaks for further ones of the same patient, type and level.
// Source: docs/decisions/alerts.md, "One alert per vital type and reading".
const betweenAlerts = 30 * time.Minute

// Covered reports whether a push that was sent, or is on its way, speaks for a notification of an alert: the person hears of the same alert as an
// escalation, or has just heard of another like it. What was planned before has to be stored.
func Covered(tx core.App, n UnplannedNotification, now time.Time) (covered bool, err error) {
	if n.Channel != "alerts" || n.Alert == "" {
		return false, nil
	}
	err = tx.NonconcurrentDB().NewQuery(`SELECT EXISTS (SELECT 1 FROM notifications e JOIN alerts a ON a.id = {:alert} JOIN alerts b ON b.id = e.alert
		WHERE e.user = {:user} AND e.patient = {:patient} AND e.created_at >= {:together} AND e.channel IN ('escalations', 'alerts')
			AND (e.channel = 'escalations' AND b.id = a.id OR b.type = a.type AND b.level = a.level AND e.created_at >= {:spaced})
			AND EXISTS (SELECT 1 FROM push_deliveries p WHERE p.notification = e.id AND p.status IN ('pending', 'sent')))`).
		Bind(dbx.Params{
			"alert": n.Alert, "user": n.User, "patient": n.Patient, "together": Instant(now.Add(-toldTogether)), "spaced": Instant(now.Add(-betweenAlerts)),
		}).Row(&covered)
	if err != nil {
		return false, fmt.Errorf("look for a push that speaks for a notification: %w", err)
	}
	return covered, nil
}

// MarkPlanned notes that the pushes of a notification are planned, and whether it shows in the app.
func MarkPlanned(tx core.App, id string, inApp bool, now time.Time) error {
	_, err := tx.NonconcurrentDB().Update(Notifications, dbx.Params{"dispatched_at": Instant(now), "in_app": inApp}, dbx.HashExp{"id": id}).Execute()
	if err != nil {
		return fmt.Errorf("note planned notification: %w", err)
	}
	return nil
}

// Inbox chooses notifications of one person that show in the app.
type Inbox struct {
	User, Channel string
	Unread        *bool
	From, To      time.Time
}

// PageOfInbox returns a page, newest first, how many there are in all, and how many of the person's are unread.
func PageOfInbox(app core.App, f Inbox, offset, limit int) (page []*core.Record, total, unread int, err error) {
	where := Conditions{dbx.HashExp{"user": f.User}, dbx.NewExp("in_app = TRUE")}.Equal("channel", f.Channel).Between("created_at", f.From, f.To)
	if f.Unread != nil && *f.Unread {
		where = append(where, dbx.NewExp("read_at = ''"))
	} else if f.Unread != nil {
		where = append(where, dbx.NewExp("read_at != ''"))
	}
	if page, total, err = where.Page(app, Notifications, "created_at DESC, id DESC", offset, limit); err != nil {
		return nil, 0, 0, err
	}
	err = app.DB().NewQuery(`SELECT COUNT(*) FROM notifications WHERE user = {:user} AND read_at = '' AND in_app = TRUE`).
		Bind(dbx.Params{"user": f.User}).Row(&unread)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("count unread notifications: %w", err)
	}
	return page, total, unread, nil
}

// FindNotification finds a notification of a person's list.
func FindNotification(app core.App, userID, id string) (*core.Record, error) {
	record := &core.Record{}
	err := app.RecordQuery(Notifications).AndWhere(dbx.HashExp{"id": id, "user": userID, "in_app": true}).Limit(1).One(record)
	if err != nil {
		return nil, fmt.Errorf("find notification: %w", err)
	}
	return record, Readable(record)
}

// MarkRead notes that a person has read one notification, or all of them for "", and returns how many were unread.
func MarkRead(tx core.App, userID, id string, now time.Time) (int64, error) {
	of := dbx.HashExp{"user": userID, "in_app": true, "read_at": ""}
	if id != "" {
		of["id"] = id
	}
	result, err := tx.NonconcurrentDB().Update(Notifications, dbx.Params{"read_at": Instant(now)}, of).Execute()
	if err != nil {
		return 0, fmt.Errorf("mark notifications read: %w", err)
	}
	return result.RowsAffected()
}
