package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Notification is one entry of a user's inbox. Title and body are encrypted.
type Notification struct{ patientRecord }

func (n *Notification) Number() int64        { return Number(n.Id) }
func (n *Notification) Channel() string      { return n.GetString("channel") }
func (n *Notification) Type() string         { return n.GetString("type") }
func (n *Notification) Severity() string     { return n.GetString("severity") }
func (n *Notification) Title() string        { return n.GetString("title") }
func (n *Notification) Body() phi.Text       { return phi.Text(n.GetString("body")) }
func (n *Notification) AlertID() string      { return n.GetString("alert") }
func (n *Notification) EscalationID() string { return n.GetString("escalation") }
func (n *Notification) EntryID() string      { return n.GetString("billing_entry") }
func (n *Notification) ReadAt() time.Time    { return instantOf(n, "read_at") }

// NotificationDraft is a notification to store.
type NotificationDraft struct {
	User, Channel, Type, Severity                string
	Title                                        string
	Body                                         phi.Text
	Patient, Alert, Escalation, Entry, DedupeKey string
	InApp                                        bool
	// AtOnce: no push about another alert covers it.
	AtOnce bool
}

// InsertNotification stores a notification unless the user has one with the same key.
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
	_, err = Write(tx, `INSERT INTO notifications (id, user, channel, type, severity, title, body, patient, alert,
			escalation, billing_entry, dedupe_key, in_app, at_once, due_at, dispatched_at, read_at, created_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, '', '', ?15)
		ON CONFLICT (user, dedupe_key) WHERE dedupe_key != '' DO NOTHING`,
		id, d.User, d.Channel, d.Type, d.Severity, title, body, d.Patient, d.Alert, d.Escalation, d.Entry, d.DedupeKey, d.InApp, d.AtOnce, FormatInstant(now))
	return wrap(err, "store notification")
}

// UnplannedNotification is a notification without planned pushes.
type UnplannedNotification struct {
	ID       string `db:"id"`
	User     string `db:"user"`
	Channel  string `db:"channel"`
	Type     string `db:"type"`
	Severity string `db:"severity"`
	Patient  string `db:"patient"`
	Alert    string `db:"alert"`
	// AlertType, Value and Threshold are those of the alert, Priority that of the escalation; "" and nil without one.
	AlertType string   `db:"alert_type"`
	Value     *float64 `db:"value"`
	Threshold *float64 `db:"threshold"`
	Priority  string   `db:"priority"`
	// AtOnce: no push about another alert covers it.
	AtOnce bool `db:"at_once"`
	// AlertLevel is the level of the alert that it is about, and IsListed whether that is not pushed by the rule for warnings.
	AlertLevel string `db:"alert_level"`
	IsListed   bool   `db:"listed"`
	// IsResponsible: the user is the patient's primary provider or the escalation's assignee.
	IsResponsible bool `db:"yours"`
	// PatientGone: the patient was archived or deleted.
	PatientGone bool `db:"gone"`
}

// UnplannedNotifications returns due notifications without planned pushes: escalations first, because their pushes cover alerts, then oldest
// first.
func UnplannedNotifications(app core.App, now time.Time, limit int) (list []UnplannedNotification, err error) {
	err = app.DB().NewQuery(`SELECT n.id, n.user, n.channel, n.type, n.severity, n.patient, n.alert, n.at_once,
			COALESCE(a.type, '') AS alert_type, a.value, a.threshold, COALESCE((SELECT priority FROM escalations WHERE id = n.escalation), '') AS priority,
			COALESCE((SELECT primary_provider FROM patients WHERE id = n.patient) = n.user, FALSE) OR
			COALESCE((SELECT assigned_to FROM escalations WHERE id = n.escalation) = (SELECT email FROM users WHERE id = n.user), FALSE) AS yours,
			COALESCE(a.level, '') AS alert_level,
			COALESCE(a.push_rule IN ('trend', 'never', 'ended'), FALSE) AS listed,
			` + patientGone + ` AS gone
		FROM notifications n LEFT JOIN alerts a ON a.id = n.alert WHERE n.id IN (SELECT id FROM notifications WHERE dispatched_at = '' AND due_at <= {:now}
			ORDER BY channel != 'escalations', due_at, id LIMIT +{:limit}) ORDER BY n.channel != 'escalations', n.due_at, n.id`).
		Bind(dbx.Params{"now": FormatInstant(now), "limit": limit}).All(&list)
	return list, wrap(err, "find notifications to plan")
}

// sameEventWindow is how far apart the notifications of one event may have been stored.
const sameEventWindow = time.Hour

// alertPushInterval is how long a push about an alert covers further ones of the same patient, type and level. Source:
// docs/decisions/alerts.md, "One alert per vital type and reading".
const alertPushInterval = 30 * time.Minute

// HasCoveringPush reports whether a sent or pending push covers the notification of an alert: one about the alert's escalation, or a recent
// one about a similar alert that was not retracted. Earlier plans must be stored.
func HasCoveringPush(tx core.App, n UnplannedNotification, now time.Time) (covered bool, err error) {
	if n.Channel != "alerts" || n.Alert == "" {
		return false, nil
	}
	err = tx.NonconcurrentDB().NewQuery(`SELECT EXISTS (SELECT 1 FROM notifications e JOIN alerts a ON a.id = {:alert} JOIN alerts b ON b.id = e.alert
		WHERE e.user = {:user} AND e.patient = {:patient} AND e.created_at >= {:together} AND e.channel IN ('escalations', 'alerts')
			AND (e.channel = 'escalations' AND b.id = a.id OR b.type = a.type AND b.level = a.level AND e.created_at >= {:spaced} AND NOT {:atOnce})
			AND b.resolution_reason != 'withdrawn' AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = b.observation AND o.status = 'entered_in_error')
			AND EXISTS (SELECT 1 FROM push_deliveries p WHERE p.notification = e.id AND p.status IN ('pending', 'sent')))`).
		Bind(dbx.Params{
			"alert": n.Alert, "user": n.User, "patient": n.Patient, "together": FormatInstant(now.Add(-sameEventWindow)), "spaced": FormatInstant(now.Add(-alertPushInterval)),
			"atOnce": n.AtOnce,
		}).Row(&covered)
	return covered, wrap(err, "look for a covering push")
}

// MarkPlanned records that the pushes of a notification are planned, and whether it shows in the app.
func MarkPlanned(tx core.App, id string, inApp bool, now time.Time) error {
	return exec(tx, "note planned notification", `UPDATE notifications SET dispatched_at = {:now}, in_app = {:inApp} WHERE id = {:id}`,
		dbx.Params{"now": FormatInstant(now), "inApp": inApp, "id": id})
}

// Inbox selects notifications of one user that show in the app.
type Inbox struct {
	User, Channel string
	Unread        *bool
	// Waiting limits the list to unread messages that wait for the user: not about an alert, which the alert board has, and not about an
	// escalation that is closed or taken by another user.
	Waiting  bool
	From, To time.Time
}

// PageOfInbox returns a page, newest first, the total, and the user's number of unread notifications.
func PageOfInbox(app core.App, f Inbox, offset, limit int) (page []*Notification, total, unread int, err error) {
	where := Conditions{dbx.HashExp{"user": f.User}, dbx.NewExp("in_app = TRUE")}.Equal("channel", f.Channel).Between("created_at", f.From, f.To)
	if f.Unread != nil && *f.Unread {
		where = append(where, dbx.NewExp("read_at = ''"))
	} else if f.Unread != nil {
		where = append(where, dbx.NewExp("read_at != ''"))
	}
	if f.Waiting {
		where = append(where, dbx.NewExp(`read_at = '' AND NOT (channel = 'alerts' AND alert != '') AND NOT EXISTS (SELECT 1 FROM escalations e
			WHERE e.id = notifications.escalation AND (e.status NOT IN ('open', 'in_progress') OR (e.status = 'in_progress' AND e.assigned_to != (SELECT u.email FROM users u WHERE u.id = {:reader}))))`, dbx.Params{"reader": f.User}))
	}
	page, total, err = pageOf[Notification](app, Notifications, AllOf(where), []string{"created_at DESC", "id DESC"}, offset, limit)
	if err != nil {
		return nil, 0, 0, err
	}
	unread, err = queryValue[int](app, "count unread notifications",
		`SELECT COUNT(*) FROM notifications WHERE user = {:user} AND read_at = '' AND in_app = TRUE`, dbx.Params{"user": f.User})
	return page, total, unread, err
}

// FindNotification finds a notification in a user's inbox.
func FindNotification(app core.App, userID, id string) (*Notification, error) {
	return findReadable[Notification](app, Notifications, dbx.HashExp{"id": id, "user": userID, "in_app": true})
}

// MarkRead marks one notification of a user as read, or all for "", and returns how many were unread.
func MarkRead(tx core.App, userID, id string, now time.Time) (int64, error) {
	of := dbx.HashExp{"user": userID, "in_app": true, "read_at": ""}
	if id != "" {
		of["id"] = id
	}
	return updateCounted(tx, "mark notifications read", Notifications, dbx.Params{"read_at": FormatInstant(now)}, of)
}

// StoredPreferences are a user's choices as JSON; both texts are "" if the user never chose.
type StoredPreferences struct {
	User     string `db:"user"`
	Channels string `db:"channels"`
	Quiet    string `db:"quiet_hours"`
}

// PreferencesOf returns the choices of users; users who never chose are omitted.
func PreferencesOf(app core.App, userIDs []string) (map[string]StoredPreferences, error) {
	var rows []StoredPreferences
	err := app.DB().Select("user", "channels", "quiet_hours").From(NotificationPreferences).Where(AnyOf("user", userIDs)).All(&rows)
	found := make(map[string]StoredPreferences, len(rows))
	for _, row := range rows {
		found[row.User] = row
	}
	return found, wrap(err, "find notification preferences")
}

// SavePreferences stores a user's choices.
func SavePreferences(tx core.App, p StoredPreferences, now time.Time) error {
	return exec(tx, "store notification preferences", `INSERT INTO notification_preferences (id, user, channels, quiet_hours, updated_at)
		VALUES ({:id}, {:user}, {:channels}, {:quiet}, {:at})
		ON CONFLICT (user) DO UPDATE SET channels = excluded.channels, quiet_hours = excluded.quiet_hours, updated_at = excluded.updated_at`, dbx.Params{"id": core.GenerateDefaultRandomId(), "user": p.User, "channels": p.Channels, "quiet": p.Quiet, "at": FormatInstant(now)})
}
