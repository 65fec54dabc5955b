package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/routes/web"
)

// tokenView is a push token as its owner sees it; the token itself is not shown again.
type tokenView struct {
	ID          int64   `json:"id"`
	DeviceID    string  `json:"device_id"`
	Type        string  `json:"type"`
	Platform    string  `json:"platform"`
	AppVersion  string  `json:"app_version"`
	Active      bool    `json:"active"`
	Deliverable bool    `json:"deliverable"`
	TokenHint   string  `json:"token_hint"`
	CreatedAt   *string `json:"created_at"`
	UpdatedAt   *string `json:"updated_at"`
}

func (a *api) viewToken(token *collections.PushToken) tokenView {
	return tokenView{
		ID: token.Number(), DeviceID: token.DeviceID(), Type: token.Type(), Platform: token.Platform(), AppVersion: token.AppVersion(),
		Active: token.Active(), Deliverable: a.Push.Delivers(token.Type()), TokenHint: token.Hint(),
		CreatedAt: instantOrNull(token.CreatedAt()), UpdatedAt: instantOrNull(token.UpdatedAt()),
	}
}

func (a *api) registerToken(c *web.Call, body notifications.RegisterBody) error {
	token, first, err := a.Push.Register(c.App, c.Caller.RecordID, body, c.Now)
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
	q := c.Query()
	p := q.Paging()
	if err := q.Err(); err != nil {
		return err
	}
	tokens, total, err := collections.PageOfPushTokens(c.App, c.Caller.RecordID, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	return web.List(c, p, total, web.Views(tokens, a.viewToken), 0)
}

func (a *api) deleteToken(c *web.Call) error {
	number, err := c.PathInteger("id")
	if err != nil {
		return err
	}
	return c.Done(notifications.Unregister(c.App, c.Caller.RecordID, number, c.Now))
}

// readPublicKey tells a browser with which key to subscribe: that of the type asked for, else the production key where there is one.
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
