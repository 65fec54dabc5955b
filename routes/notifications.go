package routes

import (
	"strconv"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/routes/web"
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

func viewNotification(record *core.Record) notificationView {
	readAt := storedInstant(record, "read_at")
	return notificationView{
		ID: collections.Number(record.Id), Channel: record.GetString("channel"), Type: record.GetString("type"), Severity: record.GetString("severity"),
		Title: record.GetString("title"), Body: record.GetString("body"), PatientID: orNull(record.GetString("patient")),
		AlertID: storedNumber(record, "alert"), EscalationID: storedNumber(record, "escalation"), EntryID: orNull(record.GetString("billing_entry")),
		Read: readAt != nil, ReadAt: readAt, CreatedAt: storedInstant(record, "created_at"),
	}
}

// inboxPage is a page of a person's list and how much of the list is unread.
type inboxPage struct {
	web.Page[notificationView]
	UnreadCount int `json:"unread_count"`
}

func (a *api) listNotifications(c *web.Call) error {
	q := c.Query()
	p := q.Paging()
	between := q.Between()
	filter := collections.Inbox{
		User: c.Caller.RecordID, Unread: q.Boolean("unread"), Channel: q.OneOf("channel", notifications.Channels...), From: between.From, To: between.To,
	}
	if err := q.Err(); err != nil {
		return err
	}
	entries, total, unread, err := collections.PageOfInbox(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	entries, unreadable := collections.ReadableRecords(entries)
	if err := recordNotificationsRead(c, "", entries...); err != nil {
		return err
	}
	views := web.Views(entries, viewNotification)
	page, err := web.PageOf(c, p, total, views)
	if err != nil {
		return err
	}
	page.Unreadable = unreadable
	return c.OK(inboxPage{page, unread})
}

// recordNotificationsRead notes whose data the entries showed; entries about nobody leave no trace.
func recordNotificationsRead(c *web.Call, id string, entries ...*core.Record) error {
	shown := distinct(entries, patientOf)
	if len(shown) == 0 {
		return nil
	}
	return c.RecordRead(audit.PatientRead, audit.ResourceNotification, id, shown...)
}

// notification finds the entry of the path on the caller's own list.
func notification(c *web.Call) (*core.Record, error) {
	number, err := c.PathInteger("id")
	if err != nil {
		return nil, err
	}
	record, err := collections.FindNotification(c.App, c.Caller.RecordID, collections.NumberID(number))
	return record, missing(err)
}

func (a *api) readNotification(c *web.Call) error {
	record, err := notification(c)
	if err != nil {
		return err
	}
	return c.Answer(viewNotification(record), recordNotificationsRead(c, strconv.FormatInt(collections.Number(record.Id), 10), record))
}

func (a *api) markRead(c *web.Call) error {
	record, err := notification(c)
	if err != nil {
		return err
	}
	if _, err := collections.MarkRead(c.App, c.Caller.RecordID, record.Id, c.Now); err != nil {
		return err
	}
	return a.readNotification(c)
}

func (a *api) markAllRead(c *web.Call) error {
	updated, err := collections.MarkRead(c.App, c.Caller.RecordID, "", c.Now)
	if err != nil {
		return err
	}
	return c.OK(struct {
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

func (a *api) listDeliveries(c *web.Call) error {
	q := c.Query()
	p := q.Paging()
	between := q.Between()
	where := collections.Conditions{}.Between("created_at", between.From, between.To).Equal("status", q.OneOf("status",
		collections.PushPending, collections.PushSent, collections.PushFailed, collections.PushExpiredToken,
		collections.PushSkippedQuietHours, collections.PushSkippedPreference, collections.PushNoTransport))
	if err := q.Err(); err != nil {
		return err
	}
	pushes, total, err := collections.PageOfPushes(c.App, where, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	addresses, err := collections.AddressesOf(c.App, pushes)
	if err != nil {
		return err
	}
	views := make([]deliveryView, len(pushes))
	for i, push := range pushes {
		views[i] = deliveryView{
			ID: collections.Number(push.Id), NotificationID: collections.Number(push.GetString("notification")),
			User: orNull(addresses[push.GetString("user")]), TokenID: storedNumber(push, "push_token"), Type: push.GetString("type"),
			Title: push.GetString("title"), Body: push.GetString("body"), Status: push.GetString("status"), AttemptedAt: storedInstant(push, "attempted_at"),
		}
		if code := collections.Optional(push, "status_code"); code != nil {
			views[i].StatusCode = new(int64(*code))
		}
	}
	return web.List(c, p, total, views, 0)
}

func (a *api) readPreferences(c *web.Call) error {
	user, err := collections.FindUser(c.App, c.Caller.RecordID)
	if err != nil {
		return err
	}
	return c.Answer(notifications.PreferencesOf(c.App, user, a.Zone))
}

func (a *api) updatePreferences(c *web.Call, body notifications.PreferencesBody) error {
	return c.Answer(notifications.ChangePreferences(c.App, c.Caller.RecordID, body, a.Zone, c.Now))
}
