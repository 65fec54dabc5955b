package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// The states of a push.
const (
	PushPending           = "pending"
	PushSent              = "sent"
	PushFailed            = "failed"
	PushExpiredToken      = "expired_token"
	PushSkippedQuietHours = "skipped_quiet_hours"
	PushSkippedPreference = "skipped_preference"
	PushNoTransport       = "no_transport"
)

// PushDraft is the intent to push a notification to one token; Token is "" where no token was looked at.
type PushDraft struct{ Notification, Token, User, Type, Title, Body, Status string }

// InsertPush stores the intent, once for each notification and token.
func InsertPush(tx core.App, d PushDraft, now time.Time) error {
	id, err := NextID(tx, PushDeliveries)
	if err != nil {
		return err
	}
	attempted, next := "", ""
	switch d.Status {
	case PushPending:
		next = Instant(now)
	case PushSent:
		attempted = Instant(now)
	}
	return exec(tx, "store push", `INSERT INTO push_deliveries
			(id, notification, push_token, user, type, title, body, status, attempts, attempted_at, next_attempt_at, created_at)
		VALUES ({:id}, {:notification}, {:token}, {:user}, {:type}, {:title}, {:body}, {:status}, 0, {:attempted}, {:next}, {:at})
		ON CONFLICT (notification, push_token) WHERE push_token != '' DO NOTHING`, dbx.Params{
		"id": id, "notification": d.Notification, "token": d.Token, "user": d.User, "type": d.Type, "title": d.Title, "body": d.Body,
		"status": d.Status, "attempted": attempted, "next": next, "at": Instant(now),
	})
}

// ClaimedPush is a push that is about to be sent, and all that it takes.
type ClaimedPush struct {
	ID           string `db:"id"`
	Notification string `db:"notification"`
	TokenID      string `db:"push_token"`
	TokenType    string `db:"token_type"`
	SealedToken  string `db:"token"`
	TokenActive  bool   `db:"token_active"`
	Title        string `db:"title"`
	Body         string `db:"body"`
	Attempts     int    `db:"attempts"` // this one included
	CreatedAt    string `db:"created_at"`
	Channel      string `db:"channel"`
	Type         string `db:"type"`
	Severity     string `db:"severity"`
	Patient      string `db:"patient"`
	Alert        string `db:"alert"`
	Escalation   string `db:"escalation"`
}

// Token is opened.
func (c *ClaimedPush) Token() (phi.Text, error) {
	plain, err := OpenValue(c.SealedToken, PushTokens, "token", c.TokenID)
	return phi.Text(plain), err
}

// ClaimPushes takes the pushes that have been due for longest and puts off their next attempt to the end of the lease.
func ClaimPushes(app core.App, now, lease time.Time, limit int) (claimed []*ClaimedPush, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		var ids []string
		err := tx.DB().NewQuery(`UPDATE push_deliveries SET attempts = attempts + 1, attempted_at = {:now}, next_attempt_at = {:lease} WHERE id IN
			(SELECT id FROM push_deliveries WHERE status = 'pending' AND next_attempt_at <= {:now} ORDER BY next_attempt_at LIMIT +{:limit})
			RETURNING id`).Bind(dbx.Params{"now": Instant(now), "lease": Instant(lease), "limit": limit}).Column(&ids)
		if err != nil || len(ids) == 0 {
			return err
		}
		return tx.DB().Select("d.id", "d.notification", "d.push_token", "d.title", "d.body", "d.attempts", "d.created_at",
			"COALESCE(t.type, '') AS token_type", "COALESCE(t.token, '') AS token", "COALESCE(t.active, FALSE) AS token_active",
			"n.channel", "n.type", "n.severity", "n.patient", "n.alert", "n.escalation").
			From("push_deliveries d").InnerJoin("notifications n", dbx.NewExp("n.id = d.notification")).
			LeftJoin("push_tokens t", dbx.NewExp("t.id = d.push_token")).Where(oneOf("d.id", ids)).All(&claimed)
	})
	return claimed, wrap(err, "claim pushes")
}

// FinishedPush is how an attempt ended. NextAttempt is the zero time unless it is to be tried again.
type FinishedPush struct {
	ID, Status, Body string
	StatusCode       int // 0 for no answer
	NextAttempt      time.Time
	Uncounted        bool // the attempt was not made after all
}

// FinishPush notes how an attempt ended.
func FinishPush(tx core.App, s FinishedPush) error {
	changes := dbx.Params{"status": s.Status, "body": s.Body, "next_attempt_at": Instant(s.NextAttempt)}
	if s.StatusCode != 0 {
		changes["status_code"] = s.StatusCode
	}
	if s.Uncounted {
		changes["attempts"] = dbx.NewExp("attempts - 1")
	}
	return update(tx, "settle push", PushDeliveries, changes, dbx.HashExp{"id": s.ID})
}

// PageOfPushes returns a page of deliveries, newest first, and how many there are in all.
func PageOfPushes(app core.App, from, to time.Time, status string, offset, limit int) ([]*PushDelivery, int, error) {
	where := Conditions{}.Between("created_at", from, to).Equal("status", status)
	return pageOf[PushDelivery](app, PushDeliveries, Every(where), []string{"created_at DESC", "id DESC"}, offset, limit)
}

// PushDelivery is one push to one token, or why there was none.
type PushDelivery struct{ core.BaseRecordProxy }

func (p *PushDelivery) Number() int64          { return Number(p.Id) }
func (p *PushDelivery) NotificationID() string { return p.GetString("notification") }
func (p *PushDelivery) UserID() string         { return p.GetString("user") }
func (p *PushDelivery) TokenID() string        { return p.GetString("push_token") }
func (p *PushDelivery) Type() string           { return p.GetString("type") }
func (p *PushDelivery) Title() string          { return p.GetString("title") }
func (p *PushDelivery) Body() string           { return p.GetString("body") }
func (p *PushDelivery) Status() string         { return p.GetString("status") }
func (p *PushDelivery) StatusCode() *float64   { return Optional(p.ProxyRecord(), "status_code") }
func (p *PushDelivery) AttemptedAt() time.Time { return ParseInstant(p.GetString("attempted_at")) }
