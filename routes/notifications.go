package routes

import (
	"strconv"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// notificationView is an entry of a person's list.
type notificationView struct {
	ID           int64   `json:"id"`
	Channel      string  `json:"channel"`
	Type         string  `json:"type"`
	Severity     string  `json:"severity"`
	Title        string  `json:"title"`
	Body         string  `json:"body"`
	PatientID    *string `json:"patient_id"`
	AlertID      *int64  `json:"alert_id"`
	EscalationID *int64  `json:"escalation_id"`
	EntryID      *string `json:"entry_id"`
	Read         bool    `json:"read"`
	ReadAt       *string `json:"read_at"`
	CreatedAt    *string `json:"created_at"`
}

func viewNotification(n *collections.Notification) notificationView {
	return notificationView{
		ID: n.Number(), Channel: n.Channel(), Type: n.Type(), Severity: n.Severity(), Title: n.Title(), Body: n.Body().Reveal(),
		PatientID: orNull(n.PatientID()), AlertID: numberOrNull(n.AlertID()), EscalationID: numberOrNull(n.EscalationID()), EntryID: orNull(n.EntryID()),
		Read: !n.ReadAt().IsZero(), ReadAt: instantOrNull(n.ReadAt()), CreatedAt: instantOrNull(n.CreatedAt()),
	}
}

// inboxPage is a page of a person's list and how much of the list is unread.
type inboxPage struct {
	Page[notificationView]
	UnreadCount int `json:"unread_count"`
}

func (a *api) listNotifications(c *call) error {
	q := c.query()
	p := q.paging()
	between := q.between()
	filter := collections.Inbox{
		User: c.Caller.RecordID, Unread: q.boolean("unread"), Channel: q.oneOf("channel", notifications.Channels...), From: between.From, To: between.To,
	}
	if err := q.err(); err != nil {
		return err
	}
	entries, total, unread, err := collections.PageOfInbox(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	entries, unreadable := collections.ReadableOnly(entries)
	if err := recordNotificationsRead(c, "", entries...); err != nil {
		return err
	}
	views := make([]notificationView, len(entries))
	for i, entry := range entries {
		views[i] = viewNotification(entry)
	}
	page, err := pageOf(c, p, total, views)
	if err != nil {
		return err
	}
	page.Unreadable = unreadable
	return c.ok(inboxPage{page, unread})
}

// recordNotificationsRead notes whose data the entries showed; entries about nobody leave no trace.
func recordNotificationsRead(c *call, id string, entries ...*collections.Notification) error {
	patients := map[string]bool{}
	for _, entry := range entries {
		if patient := entry.PatientID(); patient != "" {
			patients[patient] = true
		}
	}
	if len(patients) == 0 {
		return nil
	}
	return c.recordRead(audit.PatientRead, "Notification", id, sortedKeys(patients)...)
}

// notification finds the entry of the path on the caller's own list.
func (c *call) notification() (*collections.Notification, error) {
	number, err := c.pathInteger("id")
	if err != nil {
		return nil, err
	}
	record, err := collections.FindNotification(c.App, c.Caller.RecordID, collections.NumberID(number))
	if collections.Missing(err) {
		return nil, fault.Missing()
	}
	return record, err
}

func (a *api) readNotification(c *call) error {
	record, err := c.notification()
	if err != nil {
		return err
	}
	if err := recordNotificationsRead(c, strconv.FormatInt(record.Number(), 10), record); err != nil {
		return err
	}
	return c.ok(viewNotification(record))
}

func (a *api) markRead(c *call) error {
	record, err := c.notification()
	if err != nil {
		return err
	}
	if _, err := collections.MarkRead(c.App, c.Caller.RecordID, record.Id, c.Now); err != nil {
		return err
	}
	if record, err = c.notification(); err != nil {
		return err
	}
	if err := recordNotificationsRead(c, strconv.FormatInt(record.Number(), 10), record); err != nil {
		return err
	}
	return c.ok(viewNotification(record))
}

func (a *api) markAllRead(c *call) error {
	updated, err := collections.MarkRead(c.App, c.Caller.RecordID, "", c.Now)
	if err != nil {
		return err
	}
	return c.ok(struct {
		Updated int64 `json:"updated"`
	}{updated})
}

// deliveryView is one push as administrators see it.
type deliveryView struct {
	ID             int64   `json:"id"`
	NotificationID int64   `json:"notification_id"`
	User           *string `json:"user"`
	TokenID        *int64  `json:"token_id"`
	Type           string  `json:"type"`
	Title          string  `json:"title"`
	Body           string  `json:"body"`
	Status         string  `json:"status"`
	StatusCode     *int64  `json:"status_code"`
	AttemptedAt    *string `json:"attempted_at"`
}

func (a *api) listDeliveries(c *call) error {
	q := c.query()
	p := q.paging()
	between := q.between()
	status := q.oneOf("status", collections.PushPending, collections.PushSent, collections.PushFailed, collections.PushExpiredToken,
		collections.PushSkippedQuietHours, collections.PushSkippedPreference, collections.PushNoTransport)
	if err := q.err(); err != nil {
		return err
	}
	pushes, total, err := collections.PageOfPushes(c.App, between.From, between.To, status, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	users := make([]string, len(pushes))
	for i, push := range pushes {
		users[i] = push.UserID()
	}
	addresses, err := collections.AddressesOf(c.App, users)
	if err != nil {
		return err
	}
	views := make([]deliveryView, len(pushes))
	for i, push := range pushes {
		views[i] = deliveryView{
			ID: push.Number(), NotificationID: collections.Number(push.NotificationID()), User: orNull(addresses[push.UserID()]),
			TokenID: numberOrNull(push.TokenID()), Type: push.Type(), Title: push.Title(), Body: push.Body(), Status: push.Status(),
			AttemptedAt: instantOrNull(push.AttemptedAt()),
		}
		if code := push.StatusCode(); code != nil {
			views[i].StatusCode = new(int64(*code))
		}
	}
	return list(c, p, total, views, 0)
}

func (a *api) readPreferences(c *call) error {
	user, err := collections.FindUser(c.App, c.Caller.RecordID)
	if err != nil {
		return err
	}
	preferences, err := notifications.PreferencesOf(c.App, user, a.Zone)
	if err != nil {
		return err
	}
	return c.ok(preferences)
}

func (a *api) updatePreferences(c *call) error {
	var body notifications.PreferencesBody
	if err := c.decode(&body); err != nil {
		return err
	}
	preferences, err := notifications.ChangePreferences(c.App, c.Caller.RecordID, body, a.Zone, c.Now)
	if err != nil {
		return err
	}
	return c.ok(preferences)
}
