package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// AddResetToken stores the hash of a set-password link's token. Earlier links of the user stop working.
func AddResetToken(tx core.App, userID, tokenHash, purpose string, now, expires time.Time) error {
	_, err := tx.DB().Update(ResetTokens, dbx.Params{"used_at": Instant(now)}, dbx.HashExp{"user": userID, "used_at": ""}).Execute()
	if err != nil {
		return fmt.Errorf("end earlier reset tokens: %w", err)
	}
	_, err = tx.DB().Insert(ResetTokens, dbx.Params{
		"user": userID, "token_hash": tokenHash, "purpose": purpose,
		"created_at": Instant(now), "expires_at": Instant(expires),
	}).Execute()
	return wrap(err, "store reset token")
}

// UseResetToken uses a token up and returns whose it was; a missing row means that it is unknown, used or expired.
func UseResetToken(tx core.App, tokenHash string, now time.Time) (userID string, err error) {
	err = tx.NonconcurrentDB().NewQuery(`UPDATE reset_tokens SET used_at = {:now}
		WHERE token_hash = {:hash} AND used_at = '' AND expires_at > {:now} RETURNING user`).
		Bind(dbx.Params{"hash": tokenHash, "now": Instant(now)}).Row(&userID)
	return userID, wrap(err, "use reset token")
}

// FindResetToken returns whose an unused token is, without using it; a missing row means that it is unknown, used or expired.
func FindResetToken(app core.App, tokenHash string, now time.Time) (string, error) {
	return queryValue[string](app, "find reset token", `SELECT user FROM reset_tokens WHERE token_hash = {:hash} AND used_at = '' AND expires_at > {:now}`,
		dbx.Params{"hash": tokenHash, "now": Instant(now)})
}
