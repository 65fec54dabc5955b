package collections

import (
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// The states of a refresh token.
const (
	RefreshValid   = "valid"
	RefreshRotated = "rotated"
	RefreshRevoked = "revoked"
)

// RefreshToken is one link of a family: all tokens that came from one sign-in. The token itself is not stored.
type RefreshToken struct {
	ID              string
	UserID          string
	TokenHash       string
	Family          string
	Parent          string // id of the token this one replaced
	DeviceID        string
	State           string
	RevokedBecause  string
	FamilyStartedAt time.Time
	IssuedAt        time.Time
	ExpiresAt       time.Time
	LastUsedAt      time.Time // last request of the family that was noted; zero when none was
	SourceIP        string
}

// CreateRefreshToken stores a valid token under a fresh id.
func CreateRefreshToken(tx core.App, t RefreshToken) error {
	return exec(tx, "store refresh token", `INSERT INTO refresh_tokens
		(id, user, token_hash, family, parent, device_id, state, revoked_because, family_started_at, issued_at, expires_at, last_used_at, source_ip)
		VALUES ({:id}, {:user}, {:hash}, {:family}, {:parent}, {:device}, 'valid', '', {:started}, {:issued}, {:expires}, '', {:ip})`, dbx.Params{
		"id": core.GenerateDefaultRandomId(), "user": t.UserID, "hash": t.TokenHash, "family": t.Family, "parent": t.Parent,
		"device": t.DeviceID, "started": Instant(t.FamilyStartedAt), "issued": Instant(t.IssuedAt),
		"expires": Instant(t.ExpiresAt), "ip": t.SourceIP,
	})
}

// HoldRefreshToken reads a token by its hash inside a transaction and takes the write lock, so that of several users
// of one token the first decides. It must be the first statement of the transaction.
func HoldRefreshToken(tx core.App, tokenHash string) (RefreshToken, error) {
	t := RefreshToken{TokenHash: tokenHash}
	var started, issued, expires, used string
	err := tx.NonconcurrentDB().NewQuery(`UPDATE refresh_tokens SET state = state WHERE token_hash = {:hash}
		RETURNING id, user, family, parent, device_id, state, revoked_because, family_started_at, issued_at, expires_at, last_used_at, source_ip`).
		Bind(dbx.Params{"hash": tokenHash}).
		Row(&t.ID, &t.UserID, &t.Family, &t.Parent, &t.DeviceID, &t.State, &t.RevokedBecause, &started, &issued, &expires, &used, &t.SourceIP)
	if err != nil {
		return RefreshToken{}, fmt.Errorf("find refresh token: %w", err)
	}
	t.FamilyStartedAt, t.IssuedAt = ParseInstant(started), ParseInstant(issued)
	t.ExpiresAt, t.LastUsedAt = ParseInstant(expires), ParseInstant(used)
	return t, nil
}

// RotateRefreshToken marks a valid token as swapped; that it is no longer valid is an error.
func RotateRefreshToken(tx core.App, id string, now time.Time) error {
	n, err := changeRefreshTokens(tx, `UPDATE refresh_tokens SET state = 'rotated', last_used_at = {:now} WHERE id = {:id} AND state = 'valid'`,
		dbx.Params{"id": id, "now": Instant(now)})
	if err == nil && n != 1 {
		err = errors.New("rotate refresh token: it is not valid")
	}
	return err
}

// RevokeRefreshFamily ends the valid token of a family and returns how many it ended: one or none.
func RevokeRefreshFamily(tx core.App, family, because string) (int64, error) {
	return changeRefreshTokens(tx, `UPDATE refresh_tokens SET state = 'revoked', revoked_because = {:why} WHERE family = {:family} AND state = 'valid'`,
		dbx.Params{"family": family, "why": because})
}

// RevokeRefreshTokens ends every valid token of a user and returns how many it ended: one per family.
func RevokeRefreshTokens(tx core.App, userID, because string) (int64, error) {
	return changeRefreshTokens(tx, `UPDATE refresh_tokens SET state = 'revoked', revoked_because = {:why} WHERE user = {:user} AND state = 'valid'`,
		dbx.Params{"user": userID, "why": because})
}

// RefreshFamilyStartedAt is when a user signed in to start a family that has not ended; a missing row means that there is none.
func RefreshFamilyStartedAt(app core.App, userID, family string) (time.Time, error) {
	var started string
	err := app.DB().NewQuery(`SELECT family_started_at FROM refresh_tokens WHERE family = {:family} AND user = {:user} AND state = 'valid'`).
		Bind(dbx.Params{"family": family, "user": userID}).Row(&started)
	return ParseInstant(started), wrap(err, "find sign-in")
}

// NoteRefreshFamilyUsed notes a request made under a family.
func NoteRefreshFamilyUsed(app core.App, family string, now time.Time) error {
	_, err := changeRefreshTokens(app, `UPDATE refresh_tokens SET last_used_at = {:now} WHERE family = {:family} AND state = 'valid'`,
		dbx.Params{"family": family, "now": Instant(now)})
	return err
}

func changeRefreshTokens(app core.App, sql string, params dbx.Params) (int64, error) {
	return change(app, "change refresh tokens", sql, params)
}
