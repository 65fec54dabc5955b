package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// PushToken is the push address of one device of a user. Each registration replaces it. The token itself is encrypted.
type PushToken struct{ datedRecord }

// NewPushToken returns an unsaved token with the next number.
func NewPushToken(app core.App, userID string, now time.Time) (*PushToken, error) {
	return newRecord[PushToken](app, PushTokens, map[string]any{"user": userID, "active": true, "created_at": FormatInstant(now)})
}

// Columns of a token that a registration fills.
const (
	TokenToken       = "token"
	TokenHash        = "token_hash"
	TokenType        = "type"
	TokenDeviceID    = "device_id"
	TokenPlatform    = "platform"
	TokenAppVersion  = "app_version"
	TokenDeliverable = "deliverable"
	TokenReason      = "inactive_because"
	TokenHint        = "token_hint"
	TokenExpiresAt   = "expires_at"
	TokenSession     = "session"
)

func (t *PushToken) Number() int64      { return Number(t.Id) }
func (t *PushToken) Hash() string       { return t.GetString(TokenHash) }
func (t *PushToken) DeviceID() string   { return t.GetString(TokenDeviceID) }
func (t *PushToken) Platform() string   { return t.GetString(TokenPlatform) }
func (t *PushToken) AppVersion() string { return t.GetString(TokenAppVersion) }
func (t *PushToken) Hint() string       { return t.GetString(TokenHint) }
func (t *PushToken) Active() bool       { return t.GetBool("active") }
func (t *PushToken) Type() string       { return t.GetString("type") }            // kind of token
func (t *PushToken) Token() phi.Text    { return phi.Text(t.GetString("token")) } // opened
func (t *PushToken) UserID() string     { return t.GetString("user") }            // owner of the device

// ExpiresAt is the subscription's own expiry; zero for never.
func (t *PushToken) ExpiresAt() time.Time { return instantOf(t, "expires_at") }

// LastDeliveredAt is when a push was last accepted; zero for never.
func (t *PushToken) LastDeliveredAt() time.Time { return instantOf(t, "last_delivered_at") }

// ActivePushTokens returns the active tokens of users, ordered by id; nil selects all users.
func ActivePushTokens(app core.App, userIDs []string) (tokens []*PushToken, err error) {
	query := app.RecordQuery(PushTokens).AndWhere(dbx.NewExp("active = TRUE")).OrderBy("id")
	if userIDs != nil {
		query.AndWhere(AnyOf("user", userIDs))
	}
	err = query.All(&tokens)
	return tokens, wrap(err, "find push tokens")
}

// FindActivePushToken finds the active token of a user's device.
func FindActivePushToken(app core.App, userID, deviceID string) (*PushToken, error) {
	return find[PushToken](app, PushTokens, dbx.HashExp{"user": userID, "device_id": deviceID, "active": true})
}

// FindOwnPushToken finds an active token by id, if it belongs to the user.
func FindOwnPushToken(app core.App, userID, id string) (*PushToken, error) {
	return find[PushToken](app, PushTokens, dbx.HashExp{"id": id, "user": userID, "active": true})
}

// PageOfPushTokens returns a page of a user's active tokens, newest first, and the total.
func PageOfPushTokens(app core.App, userID string, offset, limit int) ([]*PushToken, int, error) {
	where := dbx.And(dbx.HashExp{"user": userID}, dbx.NewExp("active = TRUE"))
	return pageOf[PushToken](app, PushTokens, where, []string{"id DESC"}, offset, limit)
}

// RetirePushToken deactivates a token; an inactive one keeps its reason.
func RetirePushToken(tx core.App, id, because string, now time.Time) error {
	return retirePushTokens(tx, dbx.HashExp{"id": id, "active": true}, because, now)
}

// RetirePushTokenHash deactivates the token with the hash, of any user.
func RetirePushTokenHash(tx core.App, hash, because string, now time.Time) error {
	return retirePushTokens(tx, dbx.HashExp{"token_hash": hash, "active": true}, because, now)
}

func retirePushTokens(tx core.App, which dbx.Expression, because string, now time.Time) error {
	return update(tx, "retire push token", PushTokens, dbx.Params{"active": false, "inactive_because": because, "updated_at": FormatInstant(now)}, which)
}

// SetPushDelivered records that a push to the token was accepted.
func SetPushDelivered(tx core.App, id string, now time.Time) error {
	return update(tx, "record push", PushTokens, dbx.Params{"last_delivered_at": FormatInstant(now), "inactive_because": ""}, dbx.HashExp{"id": id, "active": true})
}

// tokenRefused is recorded on an active token if the push service refused the last push. Pushes continue, because the cause may be temporary.
const tokenRefused = "refused"

// Refused reports whether the push service refused the last push to the token.
func (t *PushToken) Refused() bool {
	return t.Active() && t.GetString("inactive_because") == tokenRefused
}

// SetPushRefused records that the push service refused a push to the token.
func SetPushRefused(tx core.App, id string) error {
	return update(tx, "record push", PushTokens, dbx.Params{"inactive_because": tokenRefused}, dbx.HashExp{"id": id, "active": true})
}

// DeactivatePushTokens deactivates the push tokens of a user's device, or of all devices for "", and returns how many.
func DeactivatePushTokens(tx core.App, userID, deviceID, because string, now time.Time) (int64, error) {
	of := dbx.HashExp{"user": userID, "active": true}
	if deviceID != "" {
		of["device_id"] = deviceID
	}
	return updateCounted(tx, "deactivate push tokens", PushTokens, dbx.Params{"active": false, "inactive_because": because, "updated_at": FormatInstant(now)}, of)
}

// States of a push.
const (
	PushPending           = "pending"
	PushSent              = "sent"
	PushFailed            = "failed"
	PushExpiredToken      = "expired_token"
	PushSkippedQuietHours = "skipped_quiet_hours"
	PushSkippedPreference = "skipped_preference"
	PushNoTransport       = "no_transport"
	PushCancelled         = "cancelled" // the patient was archived or deleted before it was sent
)

// PushDraft is a push of a notification to one token; Token is "" if no token was used.
type PushDraft struct{ Notification, Token, User, Type, Title, Body, Status string }

// InsertPush stores a push, once per notification and token.
func InsertPush(tx core.App, d PushDraft, now time.Time) error {
	id, err := NextID(tx, PushDeliveries)
	if err != nil {
		return err
	}
	attempted, next := "", ""
	switch d.Status {
	case PushPending:
		next = FormatInstant(now)
	case PushSent:
		attempted = FormatInstant(now)
	}
	return exec(tx, "store push", `INSERT INTO push_deliveries
			(id, notification, push_token, user, type, title, body, status, attempts, attempted_at, next_attempt_at, created_at)
		VALUES ({:id}, {:notification}, {:token}, {:user}, {:type}, {:title}, {:body}, {:status}, 0, {:attempted}, {:next}, {:at})
		ON CONFLICT (notification, push_token) WHERE push_token != '' DO NOTHING`, dbx.Params{
		"id": id, "notification": d.Notification, "token": d.Token, "user": d.User, "type": d.Type, "title": d.Title, "body": d.Body,
		"status": d.Status, "attempted": attempted, "next": next, "at": FormatInstant(now),
	})
}

// LeasedPush is a claimed push with everything needed to send it.
type LeasedPush struct {
	ID           string `db:"id"`
	Notification string `db:"notification"`
	TokenID      string `db:"push_token"`
	TokenType    string `db:"token_type"`
	SealedToken  string `db:"token"`
	TokenActive  bool   `db:"token_active"`
	Title        string `db:"title"`
	Body         string `db:"body"`
	Attempts     int    `db:"attempts"` // including this one
	CreatedAt    string `db:"created_at"`
	Channel      string `db:"channel"`
	Type         string `db:"type"`
	Severity     string `db:"severity"`
	Patient      string `db:"patient"`
	Alert        string `db:"alert"`
	Escalation   string `db:"escalation"`
	PatientGone  bool   `db:"gone"` // archived or deleted
}

// Token returns the opened token.
func (c *LeasedPush) Token() (phi.Text, error) {
	plain, err := OpenValue(c.SealedToken, PushTokens, "token", c.TokenID)
	return phi.Text(plain), err
}

// patientGone: the patient of a notification n was archived or deleted.
const patientGone = `EXISTS (SELECT 1 FROM patients p WHERE p.id = n.patient AND n.patient != '' AND NOT (p.active = TRUE AND p.deleted_at = ''))`

// LeasePushes leases the pushes that have been due longest, by postponing their next attempt to the
// end of the lease. It reads first, because usually none is due and a transaction would wait for
// the writer.
func LeasePushes(app core.App, now, lease time.Time, limit int) (claimed []*LeasedPush, err error) {
	due, err := queryValue[bool](app, "look for pushes", `SELECT EXISTS (SELECT 1 FROM push_deliveries WHERE status = 'pending' AND next_attempt_at <= {:now})`,
		dbx.Params{"now": FormatInstant(now)})
	if err != nil || !due {
		return nil, err
	}
	err = app.RunInTransaction(func(tx core.App) error {
		var ids []string
		err := tx.DB().NewQuery(`UPDATE push_deliveries SET attempts = attempts + 1, attempted_at = {:now}, next_attempt_at = {:lease} WHERE id IN
			(SELECT id FROM push_deliveries WHERE status = 'pending' AND next_attempt_at <= {:now} ORDER BY next_attempt_at LIMIT +{:limit})
			RETURNING id`).Bind(dbx.Params{"now": FormatInstant(now), "lease": FormatInstant(lease), "limit": limit}).Column(&ids)
		if err != nil || len(ids) == 0 {
			return err
		}
		return tx.DB().Select("d.id", "d.notification", "d.push_token", "d.title", "d.body", "d.attempts", "d.created_at",
			"COALESCE(t.type, '') AS token_type", "COALESCE(t.token, '') AS token", "COALESCE(t.active, FALSE) AS token_active",
			"n.channel", "n.type", "n.severity", "n.patient", "n.alert", "n.escalation", patientGone+" AS gone").
			From("push_deliveries d").InnerJoin("notifications n", dbx.NewExp("n.id = d.notification")).
			LeftJoin("push_tokens t", dbx.NewExp("t.id = d.push_token")).Where(AnyOf("d.id", ids)).All(&claimed)
	})
	return claimed, wrap(err, "claim pushes")
}

// FinishedPush is the result of an attempt. NextAttempt is zero unless it will be retried.
type FinishedPush struct {
	ID, Status, Body string
	StatusCode       int // 0 for no response
	NextAttempt      time.Time
	Uncounted        bool // the attempt was not made
}

// FinishPush stores the result of an attempt.
func FinishPush(tx core.App, s FinishedPush) error {
	changes := dbx.Params{"status": s.Status, "body": s.Body, "next_attempt_at": FormatInstant(s.NextAttempt)}
	if s.StatusCode != 0 {
		changes["status_code"] = s.StatusCode
	}
	if s.Uncounted {
		changes["attempts"] = dbx.NewExp("attempts - 1")
	}
	return update(tx, "finish push", PushDeliveries, changes, dbx.HashExp{"id": s.ID})
}

// PageOfPushes returns a page of deliveries, newest first, and the total.
func PageOfPushes(app core.App, from, to time.Time, status string, offset, limit int) ([]*PushDelivery, int, error) {
	where := Conditions{}.Between("created_at", from, to).Equal("status", status)
	return pageOf[PushDelivery](app, PushDeliveries, AllOf(where), []string{"created_at DESC", "id DESC"}, offset, limit)
}

// PushDelivery is one push to one token, or the reason why none was sent.
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
func (p *PushDelivery) AttemptedAt() time.Time { return instantOf(p, "attempted_at") }

// DeactivateSessionPushTokens deactivates the push tokens registered in a user's session, and those without a session of the device that
// signed in.
func DeactivateSessionPushTokens(tx core.App, userID, family, deviceID, because string, now time.Time) error {
	return exec(tx, "deactivate push tokens of session", `UPDATE push_tokens SET active = FALSE, inactive_because = {:why}, updated_at = {:now}
		WHERE user = {:user} AND active = TRUE AND (session = {:family} OR session = '' AND device_id = {:device} AND {:device} != '')`,
		dbx.Params{"user": userID, "family": family, "device": deviceID, "why": because, "now": FormatInstant(now)})
}
