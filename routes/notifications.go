package routes

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

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
	PatientPhone *string `json:"patient_phone"`
	Read         bool    `json:"read"`
	ReadAt       *string `json:"read_at"`
	CreatedAt    *string `json:"created_at"`
}

// notificationRows are the endpoints of notifications and push tokens.
func notificationRows() []route {
	return []route{
		{http.MethodGet, "/notifications/", authz.UseOwnAccount, ratelimit.User, (*api).listNotifications},
		{http.MethodGet, "/notifications/{id}/", authz.UseOwnAccount, ratelimit.User, withRecord((*api).notification, (*api).readNotification)},
		{http.MethodPost, "/notifications/{id}/read/", authz.UseOwnAccount, ratelimit.User, withRecord((*api).notification, (*api).markRead)},
		{http.MethodPost, "/notifications/read-all/", authz.UseOwnAccount, ratelimit.User, (*api).markAllRead},
		{http.MethodGet, "/notifications/deliveries/", authz.ReadPushDeliveries, ratelimit.User, (*api).listDeliveries},
		{http.MethodGet, "/users/me/notification-preferences/", authz.UseOwnAccount, ratelimit.User, (*api).readPreferences},
		{http.MethodPatch, "/users/me/notification-preferences/", authz.UseOwnAccount, ratelimit.User, withBody((*api).updatePreferences)},
		{http.MethodPost, "/notifications/tokens/register/", authz.UseOwnAccount, ratelimit.User, withBody((*api).registerToken)},
		{http.MethodGet, "/notifications/tokens/", authz.UseOwnAccount, ratelimit.User, (*api).listTokens},
		{http.MethodDelete, "/notifications/tokens/{id}/", authz.UseOwnAccount, ratelimit.User, withRecord((*api).number, (*api).deleteToken)},
		{http.MethodGet, "/notifications/vapid-public-key/", authz.Anyone, ratelimit.User, (*api).readPublicKey},
	}
}

func viewNotification(n *collections.Notification) notificationView {
	return notificationView{
		ID: n.Number(), Channel: n.Channel(), Type: n.Type(), Severity: n.Severity(), Title: n.Title(), Body: n.Body().Reveal(),
		PatientID: orNull(n.PatientID()), AlertID: numberOrNull(n.AlertID()), EscalationID: numberOrNull(n.EscalationID()), EntryID: orNull(n.EntryID()),
		Read: !n.ReadAt().IsZero(), ReadAt: instantOrNull(n.ReadAt()), CreatedAt: instantOrNull(n.CreatedAt()),
	}
}

// viewNotifications renders a caller's notifications. One about an alert has the phone number that the alert has for the caller, none if the
// patient left the caller's care. Source: docs/decisions/devices.md, "Patient phone on alerts".
func (a *api) viewNotifications(c *web.Call, entries []*collections.Notification) ([]notificationView, error) {
	about, err := collections.AlertsByID(c.App, distinct(entries, (*collections.Notification).AlertID))
	if err != nil {
		return nil, err
	}
	if a.confinedToTeams(c) {
		for _, patient := range distinct(about, (*collections.Alert).PatientID) {
			inCare, err := a.isInCare(c, patient)
			if err != nil {
				return nil, err
			}
			if !inCare {
				about = slices.DeleteFunc(about, func(alert *collections.Alert) bool { return alert.PatientID() == patient })
			}
		}
	}
	phones, err := phonesToCall(c.App, about, c.Caller.Role)
	if err != nil {
		return nil, err
	}
	return web.Map(entries, func(n *collections.Notification) notificationView {
		view := viewNotification(n)
		view.PatientPhone = orNull(phones[n.AlertID()].Reveal())
		return view
	}), nil
}

// inboxPage is a page of a user's notifications and the number of unread ones.
type inboxPage struct {
	web.Page[notificationView]
	UnreadCount int `json:"unread_count"`
}

func (a *api) listNotifications(c *web.Call) error {
	q, p := c.Listing()
	between := q.Between()
	filter := collections.Inbox{
		User: c.Caller.RecordID, Unread: q.Boolean("unread"), Channel: q.OneOf("channel", notifications.Channels...), From: between.From, To: between.To,
	}
	if waiting := q.Boolean("waiting"); waiting != nil {
		filter.Waiting = *waiting
	}
	if err := q.Err(); err != nil {
		return err
	}
	entries, total, unread, err := collections.PageOfInbox(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	entries, unreadable := collections.ReadableOnly(entries)
	if err := recordShown(c, audit.ResourceNotification, "", entries, (*collections.Notification).PatientID); err != nil {
		return err
	}
	views, err := a.viewNotifications(c, entries)
	if err != nil {
		return err
	}
	page, err := web.PageOf(c, p, total, views)
	if err != nil {
		return err
	}
	page.Unreadable = unreadable
	return c.OK(inboxPage{page, unread})
}

// notification finds the notification of the path among the caller's own.
func (a *api) notification(c *web.Call) (*collections.Notification, error) {
	number, err := c.PathInteger("id")
	if err != nil {
		return nil, err
	}
	record, err := collections.FindNotification(c.App, c.Caller.RecordID, collections.NumberID(number))
	return record, fault.OrMissing(err)
}

func (a *api) readNotification(c *web.Call, record *collections.Notification) error {
	id, shown := strconv.FormatInt(record.Number(), 10), []*collections.Notification{record}
	if err := recordShown(c, audit.ResourceNotification, id, shown, (*collections.Notification).PatientID); err != nil {
		return err
	}
	views, err := a.viewNotifications(c, shown)
	if err != nil {
		return err
	}
	return c.OK(views[0])
}

func (a *api) markRead(c *web.Call, record *collections.Notification) error {
	if _, err := collections.MarkRead(c.App, c.Caller.RecordID, record.Id, c.Now); err != nil {
		return err
	}
	return withRecord((*api).notification, (*api).readNotification)(a, c)
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

// pushDeliveryView is a push delivery for administrators.
type pushDeliveryView struct {
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
	q, p := c.Listing()
	between := q.Between()
	status := q.OneOf("status", collections.PushPending, collections.PushSent, collections.PushFailed, collections.PushExpiredToken,
		collections.PushSkippedQuietHours, collections.PushSkippedPreference, collections.PushNoTransport, collections.PushCancelled)
	if err := q.Err(); err != nil {
		return err
	}
	pushes, total, err := collections.PageOfPushes(c.App, between.From, between.To, status, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	addresses, err := collections.AddressesOf(c.App, web.Map(pushes, (*collections.PushDelivery).UserID))
	if err != nil {
		return err
	}
	return web.RespondPage(c, p, total, web.Map(pushes, func(push *collections.PushDelivery) pushDeliveryView {
		view := pushDeliveryView{
			ID: push.Number(), NotificationID: collections.Number(push.NotificationID()), User: orNull(addresses[push.UserID()]),
			TokenID: numberOrNull(push.TokenID()), Type: push.Type(), Title: push.Title(), Body: push.Body(), Status: push.Status(),
			AttemptedAt: instantOrNull(push.AttemptedAt()),
		}
		if code := push.StatusCode(); code != nil {
			view.StatusCode = new(int64(*code))
		}
		return view
	}), 0)
}

func (a *api) readPreferences(c *web.Call) error {
	user, err := collections.FindUser(c.App, c.Caller.RecordID)
	if err != nil {
		return err
	}
	return c.Respond(notifications.PreferencesOf(c.App, user, a.Zone))
}

func (a *api) updatePreferences(c *web.Call, body notifications.PreferencesBody) error {
	return c.Respond(notifications.ChangePreferences(c.App, c.Caller.RecordID, body, a.Zone, c.Now))
}

// pushTokenView is a push token for its owner; the token itself is not shown again.
type pushTokenView struct {
	ID          int64   `json:"id"`
	DeviceID    string  `json:"device_id"`
	Type        string  `json:"type"`
	Platform    string  `json:"platform"`
	AppVersion  string  `json:"app_version"`
	Active      bool    `json:"active"`
	Deliverable bool    `json:"deliverable"`
	Because     *string `json:"undeliverable_because"` // "not_configured" or "refused"
	TokenHint   string  `json:"token_hint"`
	CreatedAt   *string `json:"created_at"`
	UpdatedAt   *string `json:"updated_at"`
}

func (a *api) viewToken(token *collections.PushToken) pushTokenView {
	because := ""
	switch {
	case !a.Push.Delivers(token.Type()):
		because = "not_configured"
	case token.Refused():
		because = "refused"
	}
	return pushTokenView{
		ID: token.Number(), DeviceID: token.DeviceID(), Type: token.Type(), Platform: token.Platform(), AppVersion: token.AppVersion(),
		Active: token.Active(), Deliverable: because == "", Because: orNull(because), TokenHint: token.Hint(),
		CreatedAt: instantOrNull(token.CreatedAt()), UpdatedAt: instantOrNull(token.UpdatedAt()),
	}
}

func (a *api) registerToken(c *web.Call, body notifications.RegisterBody) error {
	token, first, err := a.Push.Register(c.App, c.Caller.RecordID, c.Caller.Family, body, c.Now)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if first {
		status = http.StatusCreated
	}
	return c.JSON(status, a.viewToken(token))
}

func (a *api) listTokens(c *web.Call) error {
	q, p := c.Listing()
	if err := q.Err(); err != nil {
		return err
	}
	return web.RespondPageOf(c, p, a.viewToken)(collections.PageOfPushTokens(c.App, c.Caller.RecordID, p.Offset(), p.Size))
}

func (a *api) deleteToken(c *web.Call, number int64) error {
	return c.NoContent(notifications.Unregister(c.App, c.Caller.RecordID, number, c.Now))
}

// readPublicKey returns the key with which a browser subscribes: the key of the requested environment, else the
// production key if there is one.
func (a *api) readPublicKey(c *web.Call) error {
	q := c.Query()
	kinds := []string{"web_push", "web_push_dev"}
	if kind := q.OneOf("type", kinds...); kind != "" {
		kinds = []string{kind}
	}
	if err := q.Err(); err != nil {
		return err
	}
	for _, kind := range kinds {
		if key := a.Push.PublicKey(kind); key != "" {
			return c.OK(struct {
				PublicKey string `json:"public_key"`
				Type      string `json:"type"`
			}{key, kind})
		}
	}
	return fault.Missing()
}
