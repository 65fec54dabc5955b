package collections

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// States of a refresh token.
const (
	RefreshValid   = "valid"
	RefreshRotated = "rotated"
	RefreshRevoked = "revoked"
)

// RefreshToken is one token of a family: all tokens that came from one sign-in. Only the hash of the token is stored.
type RefreshToken struct {
	ID              string
	UserID          string
	TokenHash       string
	Family          string
	Parent          string // id of the token that this one replaced
	DeviceID        string
	State           string
	RevokedBecause  string
	FamilyStartedAt time.Time
	IssuedAt        time.Time
	ExpiresAt       time.Time
	LastUsedAt      time.Time // last recorded request of the family, or zero; of a rotated token, when it was rotated
	SourceIP        string
	UserAgent       string
	SecondFactor    bool // the identity provider required a second factor
}

// CreateRefreshToken stores a valid token under a new id and returns the id.
func CreateRefreshToken(tx core.App, t RefreshToken) (id string, err error) {
	id = core.GenerateDefaultRandomId()
	return id, exec(tx, "store refresh token", `INSERT INTO refresh_tokens
		(id, user, token_hash, family, parent, device_id, state, revoked_because, family_started_at, issued_at, expires_at, last_used_at, source_ip, user_agent, second_factor)
		VALUES ({:id}, {:user}, {:hash}, {:family}, {:parent}, {:device}, 'valid', '', {:started}, {:issued}, {:expires}, '', {:ip}, {:agent}, {:factor})`, dbx.Params{
		"id": id, "user": t.UserID, "hash": t.TokenHash, "family": t.Family, "parent": t.Parent,
		"device": t.DeviceID, "started": FormatInstant(t.FamilyStartedAt), "issued": FormatInstant(t.IssuedAt),
		"expires": FormatInstant(t.ExpiresAt), "ip": t.SourceIP, "agent": t.UserAgent, "factor": t.SecondFactor,
	})
}

// LockRefreshToken reads a token by its hash and takes the write lock, so of concurrent uses of one token the first one wins. It must be the
// first statement of the transaction.
func LockRefreshToken(tx core.App, tokenHash string) (RefreshToken, error) {
	t := RefreshToken{TokenHash: tokenHash}
	var started, issued, expires, used string
	err := tx.NonconcurrentDB().NewQuery(`UPDATE refresh_tokens SET state = state WHERE token_hash = {:hash}
		RETURNING id, user, family, parent, device_id, state, revoked_because, family_started_at, issued_at, expires_at, last_used_at, source_ip, second_factor`).
		Bind(dbx.Params{"hash": tokenHash}).
		Row(&t.ID, &t.UserID, &t.Family, &t.Parent, &t.DeviceID, &t.State, &t.RevokedBecause, &started, &issued, &expires, &used, &t.SourceIP, &t.SecondFactor)
	if err != nil {
		return RefreshToken{}, fmt.Errorf("find refresh token: %w", err)
	}
	t.FamilyStartedAt, t.IssuedAt = ParseInstant(started), ParseInstant(issued)
	t.ExpiresAt, t.LastUsedAt = ParseInstant(expires), ParseInstant(used)
	return t, nil
}

// RotateRefreshToken marks a valid token as rotated. It fails if the token is no longer valid.
func RotateRefreshToken(tx core.App, id string, now time.Time) error {
	n, err := changeRefreshTokens(tx, `UPDATE refresh_tokens SET state = 'rotated', last_used_at = {:now} WHERE id = {:id} AND state = 'valid'`,
		dbx.Params{"id": id, "now": FormatInstant(now)})
	if err == nil && n != 1 {
		err = errors.New("rotate refresh token: it is not valid")
	}
	return err
}

// RevokeRefreshFamily revokes the valid token of a family and returns the number revoked, 0 or 1.
func RevokeRefreshFamily(tx core.App, family, because string) (int64, error) {
	return changeRefreshTokens(tx, `UPDATE refresh_tokens SET state = 'revoked', revoked_because = {:why} WHERE family = {:family} AND state = 'valid'`,
		dbx.Params{"family": family, "why": because})
}

// RevokeRefreshTokens revokes all valid tokens of a user and returns the number revoked, one per family.
func RevokeRefreshTokens(tx core.App, userID, because string) (int64, error) {
	return changeRefreshTokens(tx, `UPDATE refresh_tokens SET state = 'revoked', revoked_because = {:why} WHERE user = {:user} AND state = 'valid'`,
		dbx.Params{"user": userID, "why": because})
}

// RefreshFamilyStartedAt returns the sign-in time of a user's valid family. A not-found error means that there is none.
func RefreshFamilyStartedAt(app core.App, userID, family string) (time.Time, error) {
	started, err := queryValue[string](app, "find sign-in",
		`SELECT family_started_at FROM refresh_tokens WHERE family = {:family} AND user = {:user} AND state = 'valid'`,
		dbx.Params{"family": family, "user": userID})
	return ParseInstant(started), err
}

// MarkRefreshFamilyUsed records a request of a family.
func MarkRefreshFamilyUsed(app core.App, family string, now time.Time) error {
	_, err := changeRefreshTokens(app, `UPDATE refresh_tokens SET last_used_at = {:now} WHERE family = {:family} AND state = 'valid'`,
		dbx.Params{"family": family, "now": FormatInstant(now)})
	return err
}

func changeRefreshTokens(app core.App, sql string, params dbx.Params) (int64, error) {
	return execCounted(app, "change refresh tokens", sql, params)
}

// RefreshSuperseded is why a token was revoked after its response was presumed lost: a new token replaced it.
const RefreshSuperseded = "superseded"

// RefreshReuse is why a token was revoked when an older one of its family was presented again. It is also recorded on that older one. The access
// tokens of the family are invalid too.
const RefreshReuse = "reuse"

// RefreshChild is a refresh token issued for another one.
type RefreshChild struct {
	ID             string `db:"id"`
	State          string `db:"state"`
	RevokedBecause string `db:"revoked_because"`
	AccessUsedAt   string `db:"access_used_at"`
}

// IsUnused reports whether neither the token nor the access token issued with it has been used.
func (c RefreshChild) IsUnused() bool { return c.State == RefreshValid && c.AccessUsedAt == "" }

// RefreshChildren returns the tokens issued for a token of a family.
func RefreshChildren(app core.App, family, parent string) ([]RefreshChild, error) {
	return queryAll[RefreshChild](app, "find the successors of a refresh token",
		`SELECT id, state, revoked_because, access_used_at FROM refresh_tokens WHERE family = {:family} AND parent = {:parent}`,
		dbx.Params{"family": family, "parent": parent})
}

// SupersedeRefreshToken revokes a token that a new one replaces.
func SupersedeRefreshToken(tx core.App, id string) error {
	return update(tx, "supersede refresh token", RefreshTokens, dbx.Params{"state": RefreshRevoked, "revoked_because": RefreshSuperseded},
		dbx.HashExp{"id": id, "state": RefreshValid})
}

// MarkRefreshReuse records that a rotated token was presented again, and reports whether it was the first time.
func MarkRefreshReuse(tx core.App, id string) (first bool, err error) {
	n, err := updateCounted(tx, "record reuse of a refresh token", RefreshTokens, dbx.Params{"revoked_because": RefreshReuse},
		dbx.HashExp{"id": id, "state": RefreshRotated, "revoked_because": ""})
	return n == 1, err
}

// MarkAccessTokenUsed records a use of the access token issued with a refresh token, and reports whether the refresh token was superseded.
func MarkAccessTokenUsed(app core.App, id string, now time.Time) (superseded bool, err error) {
	var because string
	err = app.NonconcurrentDB().NewQuery(`UPDATE refresh_tokens SET access_used_at = COALESCE(NULLIF(access_used_at, ''), {:now})
		WHERE id = {:id} RETURNING revoked_because`).Bind(dbx.Params{"id": id, "now": FormatInstant(now)}).Row(&because)
	return because == RefreshSuperseded, wrap(IgnoreNotFound(err), "record use of an access token")
}

// SupersededRefreshToken reports whether a token was superseded.
func SupersededRefreshToken(app core.App, id string) (bool, error) {
	because, err := queryValue[string](app, "find refresh token", `SELECT revoked_because FROM refresh_tokens WHERE id = {:id}`, dbx.Params{"id": id})
	return because == RefreshSuperseded, IgnoreNotFound(err)
}

// RefreshEnded is why a token was revoked after its user ended the session in the list of sessions. Its access tokens are invalid too.
const RefreshEnded = "ended"

// ValidRefreshTokens returns a user's valid tokens that have not expired, one for each session, the newest session first.
func ValidRefreshTokens(app core.App, userID string, now time.Time) ([]RefreshToken, error) {
	return findRefreshTokens(app, `user = {:user} AND state = 'valid' AND expires_at > {:now}`, dbx.Params{"user": userID, "now": FormatInstant(now)})
}

// ValidRefreshToken returns the valid token of one of a user's sessions. A not-found error means that there is none.
func ValidRefreshToken(app core.App, userID, family string) (RefreshToken, error) {
	found, err := findRefreshTokens(app, `user = {:user} AND state = 'valid' AND family = {:family}`, dbx.Params{"user": userID, "family": family})
	if err != nil || len(found) == 0 {
		return RefreshToken{}, cmp.Or(err, sql.ErrNoRows)
	}
	return found[0], nil
}

// findRefreshTokens returns tokens without their hashes.
func findRefreshTokens(app core.App, where string, params dbx.Params) ([]RefreshToken, error) {
	rows, err := queryAll[struct {
		ID       string `db:"id"`
		Family   string `db:"family"`
		DeviceID string `db:"device_id"`
		Started  string `db:"family_started_at"`
		Issued   string `db:"issued_at"`
		Expires  string `db:"expires_at"`
		Used     string `db:"last_used_at"`
		IP       string `db:"source_ip"`
		Agent    string `db:"user_agent"`
		Factor   bool   `db:"second_factor"`
	}](app, "find sessions", `SELECT id, family, device_id, family_started_at, issued_at, expires_at, last_used_at, source_ip, user_agent, second_factor
		FROM refresh_tokens WHERE `+where+` ORDER BY family_started_at DESC, id`, params)
	tokens := make([]RefreshToken, len(rows))
	for i, row := range rows {
		tokens[i] = RefreshToken{
			ID: row.ID, Family: row.Family, DeviceID: row.DeviceID, State: RefreshValid, SourceIP: row.IP, UserAgent: row.Agent, SecondFactor: row.Factor,
			FamilyStartedAt: ParseInstant(row.Started), IssuedAt: ParseInstant(row.Issued), ExpiresAt: ParseInstant(row.Expires), LastUsedAt: ParseInstant(row.Used),
		}
	}
	return tokens, err
}

// EndedSessions returns the sessions that a user ended, or that ended because two clients held their tokens, and that may have access tokens
// that have not expired.
func EndedSessions(app core.App, userID string) ([]string, error) {
	return queryColumn[string](app, "find ended sessions",
		`SELECT DISTINCT family FROM refresh_tokens WHERE user = {:user} AND state != 'valid' AND revoked_because IN ({:ended}, {:reuse})`,
		dbx.Params{"user": userID, "ended": RefreshEnded, "reuse": RefreshReuse})
}

// SessionEnded reports whether a session was ended. A session with expired tokens was not, and neither was an unknown one.
func SessionEnded(app core.App, family string) (bool, error) {
	var tokens, valid int
	err := app.DB().NewQuery(`SELECT COUNT(*), COUNT(*) FILTER (WHERE state = 'valid') FROM refresh_tokens WHERE family = {:family}`).
		Bind(dbx.Params{"family": family}).Row(&tokens, &valid)
	return tokens > 0 && valid == 0, wrap(err, "find session")
}
