package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// RefreshSuperseded is why a refresh token was revoked whose answer was taken for lost: another was handed out in its place.
const RefreshSuperseded = "superseded"

// refreshReuse is noted on a swapped token that was presented again.
const refreshReuse = "reuse"

// RefreshChild is a refresh token that was handed out for another.
type RefreshChild struct {
	ID             string `db:"id"`
	State          string `db:"state"`
	RevokedBecause string `db:"revoked_because"`
	AccessUsedAt   string `db:"access_used_at"`
}

// Untouched reports whether nobody has shown yet to have it: it is good, and so is what was handed out with it, and neither was used.
func (c RefreshChild) Untouched() bool { return c.State == RefreshValid && c.AccessUsedAt == "" }

// RefreshChildren are the tokens that were handed out for one of a family.
func RefreshChildren(app core.App, family, parent string) ([]RefreshChild, error) {
	return queryAll[RefreshChild](app, "find what a refresh token was swapped for",
		`SELECT id, state, revoked_because, access_used_at FROM refresh_tokens WHERE family = {:family} AND parent = {:parent}`,
		dbx.Params{"family": family, "parent": parent})
}

// SupersedeRefreshToken revokes a token in whose place another is handed out.
func SupersedeRefreshToken(tx core.App, id string) error {
	return update(tx, "supersede refresh token", RefreshTokens, dbx.Params{"state": RefreshRevoked, "revoked_because": RefreshSuperseded},
		dbx.HashExp{"id": id, "state": RefreshValid})
}

// NoteRefreshReuse notes on a swapped token that it was presented again, and reports whether that was the first time.
func NoteRefreshReuse(tx core.App, id string) (first bool, err error) {
	n, err := updateCounted(tx, "note reuse of a refresh token", RefreshTokens, dbx.Params{"revoked_because": refreshReuse},
		dbx.HashExp{"id": id, "state": RefreshRotated, "revoked_because": ""})
	return n == 1, err
}

// NoteAccessUsed notes that the access token which came with a refresh token was used, and reports whether that one was superseded.
func NoteAccessUsed(app core.App, id string, now time.Time) (superseded bool, err error) {
	var because string
	err = app.NonconcurrentDB().NewQuery(`UPDATE refresh_tokens SET access_used_at = COALESCE(NULLIF(access_used_at, ''), {:now})
		WHERE id = {:id} RETURNING revoked_because`).Bind(dbx.Params{"id": id, "now": Instant(now)}).Row(&because)
	return because == RefreshSuperseded, wrap(unlessMissing(err), "note use of an access token")
}

// SupersededRefreshToken reports whether another token was handed out in the place of one.
func SupersededRefreshToken(app core.App, id string) (bool, error) {
	because, err := queryValue[string](app, "find refresh token", `SELECT revoked_because FROM refresh_tokens WHERE id = {:id}`, dbx.Params{"id": id})
	return because == RefreshSuperseded, unlessMissing(err)
}

// SessionEnded reports whether a session was ended. One whose tokens have merely expired was not, nor was one that nothing is known of.
func SessionEnded(app core.App, family string) (bool, error) {
	var tokens, valid int
	err := app.DB().NewQuery(`SELECT COUNT(*), COUNT(*) FILTER (WHERE state = 'valid') FROM refresh_tokens WHERE family = {:family}`).
		Bind(dbx.Params{"family": family}).Row(&tokens, &valid)
	return tokens > 0 && valid == 0, wrap(err, "find session")
}

// SilenceSession makes the push tokens inactive that a user's session registered; and of those that no session is known of, the ones of the
// device it was signed in with.
func SilenceSession(tx core.App, userID, family, deviceID, because string, now time.Time) error {
	return exec(tx, "silence session", `UPDATE push_tokens SET active = FALSE, inactive_because = {:why}, updated_at = {:now}
		WHERE user = {:user} AND active = TRUE AND (session = {:family} OR session = '' AND device_id = {:device} AND {:device} != '')`,
		dbx.Params{"user": userID, "family": family, "device": deviceID, "why": because, "now": Instant(now)})
}
