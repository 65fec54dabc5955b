package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// PushToken is where one device of a person takes pushes. The token itself is encrypted.
type PushToken struct{ core.BaseRecordProxy }

// NewPushToken returns an unsaved token with the next number.
func NewPushToken(app core.App, userID string, now time.Time) (*PushToken, error) {
	t, err := numbered[PushToken](app, PushTokens)
	if err != nil {
		return nil, err
	}
	t.Set("user", userID)
	t.Set("active", true)
	t.Set("created_at", Instant(now))
	return t, nil
}

// The columns of a token that a registration fills.
const (
	TokenToken       = "token"
	TokenHash        = "token_hash"
	TokenType        = "type"
	TokenDeviceID    = "device_id"
	TokenPlatform    = "platform"
	TokenAppVersion  = "app_version"
	TokenDeliverable = "deliverable"
	TokenHint        = "token_hint"
	TokenExpiresAt   = "expires_at"
)

func (t *PushToken) Number() int64        { return Number(t.Id) }
func (t *PushToken) Hash() string         { return t.GetString(TokenHash) }
func (t *PushToken) DeviceID() string     { return t.GetString(TokenDeviceID) }
func (t *PushToken) Platform() string     { return t.GetString(TokenPlatform) }
func (t *PushToken) AppVersion() string   { return t.GetString(TokenAppVersion) }
func (t *PushToken) Hint() string         { return t.GetString(TokenHint) }
func (t *PushToken) Active() bool         { return t.GetBool("active") }
func (t *PushToken) CreatedAt() time.Time { return ParseInstant(t.GetString("created_at")) }
func (t *PushToken) Type() string         { return t.GetString("type") }            // the kind of token
func (t *PushToken) Token() phi.Text      { return phi.Text(t.GetString("token")) } // opened
func (t *PushToken) UserID() string       { return t.GetString("user") }            // whose device it is

// ExpiresAt is when the subscription ends by its own word; zero for never.
func (t *PushToken) ExpiresAt() time.Time { return ParseInstant(t.GetString("expires_at")) }

// LastDeliveredAt is when a push was last accepted; zero for never.
func (t *PushToken) LastDeliveredAt() time.Time {
	return ParseInstant(t.GetString("last_delivered_at"))
}

func (t *PushToken) UpdatedAt() time.Time { return ParseInstant(t.GetString("updated_at")) } // when the device was last registered

// ActivePushTokens are the tokens in use of the given users, by user; of everybody for nil.
func ActivePushTokens(app core.App, userIDs []string) (tokens []*PushToken, err error) {
	query := app.RecordQuery(PushTokens).AndWhere(dbx.NewExp("active = TRUE")).OrderBy("id")
	if userIDs != nil {
		query.AndWhere(oneOf("user", userIDs))
	}
	if err := query.All(&tokens); err != nil {
		return nil, fmt.Errorf("find push tokens: %w", err)
	}
	return tokens, nil
}

// FindActivePushToken finds the token in use of a person's device.
func FindActivePushToken(app core.App, userID, deviceID string) (*PushToken, error) {
	return findPushToken(app, dbx.HashExp{"user": userID, "device_id": deviceID, "active": true})
}

// FindOwnPushToken finds a token in use by its id, if it is the user's.
func FindOwnPushToken(app core.App, userID, id string) (*PushToken, error) {
	return findPushToken(app, dbx.HashExp{"id": id, "user": userID, "active": true})
}

func findPushToken(app core.App, where dbx.Expression) (*PushToken, error) {
	return find[PushToken](app, PushTokens, where)
}

// PageOfPushTokens returns a page of a person's tokens in use, newest first, and how many there are in all.
func PageOfPushTokens(app core.App, userID string, offset, limit int) ([]*PushToken, int, error) {
	where := dbx.And(dbx.HashExp{"user": userID}, dbx.NewExp("active = TRUE"))
	return pageOf[PushToken](app, PushTokens, where, []string{"id DESC"}, offset, limit)
}

// RetirePushToken makes a token inactive; one that is already keeps its reason.
func RetirePushToken(tx core.App, id, because string, now time.Time) error {
	return retire(tx, dbx.HashExp{"id": id, "active": true}, because, now)
}

// RetirePushTokenHash makes the token with the hash inactive, whoever holds it.
func RetirePushTokenHash(tx core.App, hash, because string, now time.Time) error {
	return retire(tx, dbx.HashExp{"token_hash": hash, "active": true}, because, now)
}

func retire(tx core.App, which dbx.Expression, because string, now time.Time) error {
	return update(tx, "retire push token", PushTokens, dbx.Params{"active": false, "inactive_because": because, "updated_at": Instant(now)}, which)
}

// SetPushDelivered notes that a push to the token was accepted.
func SetPushDelivered(tx core.App, id string, now time.Time) error {
	return update(tx, "note push", PushTokens, dbx.Params{"last_delivered_at": Instant(now)}, dbx.HashExp{"id": id})
}

// SilencePushTokens makes the push tokens of a user's device inactive, those of all devices when the device is "", and returns how many.
func SilencePushTokens(tx core.App, userID, deviceID, because string, now time.Time) (int64, error) {
	of := dbx.HashExp{"user": userID, "active": true}
	if deviceID != "" {
		of["device_id"] = deviceID
	}
	return updateCounted(tx, "silence push tokens", PushTokens, dbx.Params{"active": false, "inactive_because": because, "updated_at": Instant(now)}, of)
}
