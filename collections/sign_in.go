package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// SignInStep is a sign-in with a correct password that still needs its second factor.
type SignInStep struct {
	UserID  string
	KeyHash string // of the user's token key at that time
}

// AddSignInStep stores the hash of a temporary token, and deletes expired ones.
func AddSignInStep(tx core.App, tokenHash string, step SignInStep, now, expires time.Time) error {
	if err := deleteExpired(tx, SignInSteps, now); err != nil {
		return err
	}
	return insert(tx, "store sign-in step", SignInSteps, dbx.Params{
		"id": core.GenerateDefaultRandomId(), "user": step.UserID, "token_hash": tokenHash, "key_hash": step.KeyHash, "expires_at": FormatInstant(expires),
	})
}

// FindSignInStep returns the step of a temporary token without using it. A not-found error means that it is unknown, used or expired.
func FindSignInStep(app core.App, tokenHash string, now time.Time) (step SignInStep, err error) {
	err = app.DB().NewQuery(`SELECT user, key_hash FROM sign_in_steps WHERE token_hash = {:hash} AND expires_at > {:now}`).
		Bind(dbx.Params{"hash": tokenHash, "now": FormatInstant(now)}).Row(&step.UserID, &step.KeyHash)
	return step, wrap(err, "find sign-in step")
}

// UseSignInStep is FindSignInStep and consumes the token.
func UseSignInStep(tx core.App, tokenHash string, now time.Time) (step SignInStep, err error) {
	err = tx.NonconcurrentDB().NewQuery(`DELETE FROM sign_in_steps WHERE token_hash = {:hash} AND expires_at > {:now} RETURNING user, key_hash`).
		Bind(dbx.Params{"hash": tokenHash, "now": FormatInstant(now)}).Row(&step.UserID, &step.KeyHash)
	return step, wrap(err, "use sign-in step")
}

// UseChallenge records the use of a challenge and reports whether it was the first one. It deletes expired challenges.
func UseChallenge(tx core.App, challengeHash string, now, expires time.Time) (first bool, err error) {
	if err := deleteExpired(tx, UsedChallenges, now); err != nil {
		return false, err
	}
	added, err := execCounted(tx, "record used challenge", `INSERT INTO used_challenges (id, challenge_hash, expires_at) VALUES ({:id}, {:hash}, {:until})
		ON CONFLICT (challenge_hash) DO NOTHING`, dbx.Params{"id": core.GenerateDefaultRandomId(), "hash": challengeHash, "until": FormatInstant(expires)})
	return added == 1, err
}

func deleteExpired(tx core.App, table string, now time.Time) error {
	return remove(tx, "delete expired rows of "+table, table, dbx.NewExp("expires_at <= {:now}", dbx.Params{"now": FormatInstant(now)}))
}

// LoginFailure is the number of consecutive failures of an address, and the end of its lockout (zero if not locked).
type LoginFailure struct {
	Failures    int
	LockedUntil time.Time
}

// LockLoginFailure reads the failures of an address by its keyed hash, zero if none, and takes the write lock, so no other request counts at
// the same time. It must be the first statement of the transaction: an UPDATE locks even if it matches no row.
func LockLoginFailure(tx core.App, emailKey string) (LoginFailure, error) {
	var failures int
	var lockedUntil string
	err := tx.NonconcurrentDB().
		NewQuery(`UPDATE login_failures SET email_key = email_key WHERE email_key = {:key} RETURNING failures, locked_until`).
		Bind(dbx.Params{"key": emailKey}).Row(&failures, &lockedUntil)
	return LoginFailure{Failures: failures, LockedUntil: ParseInstant(lockedUntil)}, wrap(IgnoreNotFound(err), "read login failures")
}

// PutLoginFailure stores the failures of an address.
func PutLoginFailure(tx core.App, emailKey string, f LoginFailure, now time.Time) error {
	return exec(tx, "store login failures", `INSERT INTO login_failures (id, email_key, failures, last_failure_at, locked_until)
		VALUES ({:id}, {:key}, {:failures}, {:now}, {:until})
		ON CONFLICT (email_key) DO UPDATE SET failures = excluded.failures, last_failure_at = excluded.last_failure_at, locked_until = excluded.locked_until`, dbx.Params{
		"id": core.GenerateDefaultRandomId(), "key": emailKey, "failures": f.Failures,
		"now": FormatInstant(now), "until": FormatInstant(f.LockedUntil),
	})
}

// ClearLoginFailure deletes the failures of an address.
func ClearLoginFailure(tx core.App, emailKey string) error {
	return exec(tx, "clear login failures", `DELETE FROM login_failures WHERE email_key = {:key}`, dbx.Params{"key": emailKey})
}

// LockedAddresses returns the end of the lockout of locked addresses, by keyed hash.
func LockedAddresses(app core.App, emailKeys []string, now time.Time) (map[string]time.Time, error) {
	var rows []struct {
		Key   string `db:"email_key"`
		Until string `db:"locked_until"`
	}
	err := app.DB().Select("email_key", "locked_until").From(LoginFailures).
		Where(AnyOf("email_key", emailKeys)).AndWhere(dbx.NewExp("locked_until > {:now}", dbx.Params{"now": FormatInstant(now)})).All(&rows)
	locked := map[string]time.Time{}
	for _, row := range rows {
		locked[row.Key] = ParseInstant(row.Until)
	}
	return locked, wrap(err, "read locks")
}

// AddResetToken stores the hash of a set-password link's token, and ends the user's earlier links.
func AddResetToken(tx core.App, userID, tokenHash, purpose string, now, expires time.Time) error {
	of := dbx.HashExp{"user": userID, "used_at": ""}
	if err := update(tx, "end earlier reset tokens", ResetTokens, dbx.Params{"used_at": FormatInstant(now)}, of); err != nil {
		return err
	}
	return insert(tx, "store reset token", ResetTokens, dbx.Params{
		"user": userID, "token_hash": tokenHash, "purpose": purpose, "created_at": FormatInstant(now), "expires_at": FormatInstant(expires),
	})
}

// UseResetToken consumes a token and returns its user. A not-found error means that it is unknown, used or expired.
func UseResetToken(tx core.App, tokenHash string, now time.Time) (string, error) {
	return queryValue[string](tx, "use reset token", `UPDATE reset_tokens SET used_at = {:now}
		WHERE token_hash = {:hash} AND used_at = '' AND expires_at > {:now} RETURNING user`, dbx.Params{"hash": tokenHash, "now": FormatInstant(now)})
}

// FindResetToken returns the user of an unused token without consuming it. A not-found error means that it is unknown, used or expired.
func FindResetToken(app core.App, tokenHash string, now time.Time) (string, error) {
	return queryValue[string](app, "find reset token", `SELECT user FROM reset_tokens WHERE token_hash = {:hash} AND used_at = '' AND expires_at > {:now}`,
		dbx.Params{"hash": tokenHash, "now": FormatInstant(now)})
}

// UseBackupCode marks an unused backup code as used, and reports whether there was one and how many are left.
func UseBackupCode(app core.App, userID, codeHash string, now time.Time) (used bool, left int, err error) {
	n, err := execCounted(app, "use backup code", `UPDATE backup_codes SET used_at = {:now} WHERE user = {:user} AND code_hash = {:hash} AND used_at = ''`,
		dbx.Params{"now": FormatInstant(now), "user": userID, "hash": codeHash})
	if err != nil || n == 0 {
		return false, 0, err
	}
	left, err = BackupCodesLeft(app, userID)
	return true, left, err
}

// ReplaceBackupCodes replaces the user's backup codes by the hashed ones; no hashes delete all.
func ReplaceBackupCodes(tx core.App, userID string, codeHashes []string, now time.Time) error {
	err := remove(tx, "remove backup codes", BackupCodes, dbx.HashExp{"user": userID})
	for _, hash := range codeHashes {
		if err != nil {
			return err
		}
		err = insert(tx, "store backup code", BackupCodes, dbx.Params{
			"id": core.GenerateDefaultRandomId(), "user": userID, "code_hash": hash, "created_at": FormatInstant(now),
		})
	}
	return err
}

// BackupCodesLeft counts the unused codes of a user.
func BackupCodesLeft(app core.App, userID string) (int, error) {
	return queryValue[int](app, "count backup codes", `SELECT COUNT(*) FROM backup_codes WHERE user = {:user} AND used_at = ''`,
		dbx.Params{"user": userID})
}
