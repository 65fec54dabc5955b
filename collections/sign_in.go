package collections

import (
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// SignInStep is a sign-in whose password was right and that waits for its second factor.
type SignInStep struct {
	UserID  string
	KeyHash string // of the user's token key at that time
}

// AddSignInStep stores the hash of a temporary token, and removes those whose time is over.
func AddSignInStep(tx core.App, tokenHash string, step SignInStep, now, expires time.Time) error {
	if err := dropEnded(tx, SignInSteps, now); err != nil {
		return err
	}
	return insert(tx, "store sign-in step", SignInSteps, dbx.Params{
		"id": core.GenerateDefaultRandomId(), "user": step.UserID, "token_hash": tokenHash, "key_hash": step.KeyHash, "expires_at": Instant(expires),
	})
}

// FindSignInStep returns the step of a temporary token without using it; a missing row means that it is unknown, used or expired.
func FindSignInStep(app core.App, tokenHash string, now time.Time) (step SignInStep, err error) {
	err = app.DB().NewQuery(`SELECT user, key_hash FROM sign_in_steps WHERE token_hash = {:hash} AND expires_at > {:now}`).
		Bind(dbx.Params{"hash": tokenHash, "now": Instant(now)}).Row(&step.UserID, &step.KeyHash)
	return step, wrap(err, "find sign-in step")
}

// UseSignInStep is FindSignInStep for the last time: the token has had its use.
func UseSignInStep(tx core.App, tokenHash string, now time.Time) (step SignInStep, err error) {
	err = tx.NonconcurrentDB().NewQuery(`DELETE FROM sign_in_steps WHERE token_hash = {:hash} AND expires_at > {:now} RETURNING user, key_hash`).
		Bind(dbx.Params{"hash": tokenHash, "now": Instant(now)}).Row(&step.UserID, &step.KeyHash)
	return step, wrap(err, "use sign-in step")
}

// UseChallenge notes that a challenge has had its use and reports whether it was the first. Challenges whose time is over are forgotten.
func UseChallenge(tx core.App, challengeHash string, now, expires time.Time) (first bool, err error) {
	if err := dropEnded(tx, UsedChallenges, now); err != nil {
		return false, err
	}
	added, err := change(tx, "note used challenge", `INSERT INTO used_challenges (id, challenge_hash, expires_at) VALUES ({:id}, {:hash}, {:until})
		ON CONFLICT (challenge_hash) DO NOTHING`, dbx.Params{"id": core.GenerateDefaultRandomId(), "hash": challengeHash, "until": Instant(expires)})
	return added == 1, err
}

func dropEnded(tx core.App, table string, now time.Time) error {
	return remove(tx, "forget what has ended in "+table, table, dbx.NewExp("expires_at <= {:now}", dbx.Params{"now": Instant(now)}))
}

// LoginFailure is what failed at one address: consecutive failures, and until when it is locked (zero when it is not).
type LoginFailure struct {
	Failures    int
	LockedUntil time.Time
}

// HoldLoginFailure reads the failures of an address by its keyed hash, zero when there are none, and takes the write
// lock, so that nobody else counts meanwhile. It must be the first statement of the transaction: an update locks
// even when it finds no row.
func HoldLoginFailure(tx core.App, emailKey string) (LoginFailure, error) {
	var failures int
	var lockedUntil string
	err := tx.NonconcurrentDB().
		NewQuery(`UPDATE login_failures SET email_key = email_key WHERE email_key = {:key} RETURNING failures, locked_until`).
		Bind(dbx.Params{"key": emailKey}).Row(&failures, &lockedUntil)
	return LoginFailure{Failures: failures, LockedUntil: ParseInstant(lockedUntil)}, wrap(unlessMissing(err), "read login failures")
}

// PutLoginFailure stores the failures of an address.
func PutLoginFailure(tx core.App, emailKey string, f LoginFailure, now time.Time) error {
	return exec(tx, "store login failures", `INSERT INTO login_failures (id, email_key, failures, last_failure_at, locked_until)
		VALUES ({:id}, {:key}, {:failures}, {:now}, {:until})
		ON CONFLICT (email_key) DO UPDATE SET failures = excluded.failures, last_failure_at = excluded.last_failure_at, locked_until = excluded.locked_until`, dbx.Params{
		"id": core.GenerateDefaultRandomId(), "key": emailKey, "failures": f.Failures,
		"now": Instant(now), "until": Instant(f.LockedUntil),
	})
}

// ClearLoginFailure forgets the failures of an address.
func ClearLoginFailure(tx core.App, emailKey string) error {
	return exec(tx, "clear login failures", `DELETE FROM login_failures WHERE email_key = {:key}`, dbx.Params{"key": emailKey})
}

// LockedUntil reads until when addresses are locked, by their keyed hash; those that are not locked at the given time are left out.
func LockedUntil(app core.App, emailKeys []string, now time.Time) (map[string]time.Time, error) {
	var rows []struct {
		Key   string `db:"email_key"`
		Until string `db:"locked_until"`
	}
	err := app.DB().Select("email_key", "locked_until").From(LoginFailures).
		Where(AnyOf("email_key", emailKeys)).AndWhere(dbx.NewExp("locked_until > {:now}", dbx.Params{"now": Instant(now)})).All(&rows)
	locked := map[string]time.Time{}
	for _, row := range rows {
		locked[row.Key] = ParseInstant(row.Until)
	}
	return locked, wrap(err, "read locks")
}

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
	LastUsedAt      time.Time // last request of the family that was noted, zero when none was; of a token that was swapped, when that was
	SourceIP        string
	SecondFactor    bool // the identity provider asked for one at the sign-in
}

// CreateRefreshToken stores a valid token under a fresh id, and returns that.
func CreateRefreshToken(tx core.App, t RefreshToken) (id string, err error) {
	id = core.GenerateDefaultRandomId()
	return id, exec(tx, "store refresh token", `INSERT INTO refresh_tokens
		(id, user, token_hash, family, parent, device_id, state, revoked_because, family_started_at, issued_at, expires_at, last_used_at, source_ip, second_factor)
		VALUES ({:id}, {:user}, {:hash}, {:family}, {:parent}, {:device}, 'valid', '', {:started}, {:issued}, {:expires}, '', {:ip}, {:factor})`, dbx.Params{
		"id": id, "user": t.UserID, "hash": t.TokenHash, "family": t.Family, "parent": t.Parent,
		"device": t.DeviceID, "started": Instant(t.FamilyStartedAt), "issued": Instant(t.IssuedAt),
		"expires": Instant(t.ExpiresAt), "ip": t.SourceIP, "factor": t.SecondFactor,
	})
}

// HoldRefreshToken reads a token by its hash inside a transaction and takes the write lock, so that of several users
// of one token the first decides. It must be the first statement of the transaction.
func HoldRefreshToken(tx core.App, tokenHash string) (RefreshToken, error) {
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
	started, err := queryValue[string](app, "find sign-in",
		`SELECT family_started_at FROM refresh_tokens WHERE family = {:family} AND user = {:user} AND state = 'valid'`,
		dbx.Params{"family": family, "user": userID})
	return ParseInstant(started), err
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

// AddResetToken stores the hash of a set-password link's token. Earlier links of the user stop working.
func AddResetToken(tx core.App, userID, tokenHash, purpose string, now, expires time.Time) error {
	of := dbx.HashExp{"user": userID, "used_at": ""}
	if err := update(tx, "end earlier reset tokens", ResetTokens, dbx.Params{"used_at": Instant(now)}, of); err != nil {
		return err
	}
	return insert(tx, "store reset token", ResetTokens, dbx.Params{
		"user": userID, "token_hash": tokenHash, "purpose": purpose, "created_at": Instant(now), "expires_at": Instant(expires),
	})
}

// UseResetToken uses a token up and returns whose it was; a missing row means that it is unknown, used or expired.
func UseResetToken(tx core.App, tokenHash string, now time.Time) (string, error) {
	return queryValue[string](tx, "use reset token", `UPDATE reset_tokens SET used_at = {:now}
		WHERE token_hash = {:hash} AND used_at = '' AND expires_at > {:now} RETURNING user`, dbx.Params{"hash": tokenHash, "now": Instant(now)})
}

// FindResetToken returns whose an unused token is, without using it; a missing row means that it is unknown, used or expired.
func FindResetToken(app core.App, tokenHash string, now time.Time) (string, error) {
	return queryValue[string](app, "find reset token", `SELECT user FROM reset_tokens WHERE token_hash = {:hash} AND used_at = '' AND expires_at > {:now}`,
		dbx.Params{"hash": tokenHash, "now": Instant(now)})
}

// UseBackupCode marks an unused backup code as used, and reports whether there was one and how many are left.
func UseBackupCode(app core.App, userID, codeHash string, now time.Time) (used bool, left int, err error) {
	n, err := change(app, "use backup code", `UPDATE backup_codes SET used_at = {:now} WHERE user = {:user} AND code_hash = {:hash} AND used_at = ''`,
		dbx.Params{"now": Instant(now), "user": userID, "hash": codeHash})
	if err != nil || n == 0 {
		return false, 0, err
	}
	left, err = BackupCodesLeft(app, userID)
	return true, left, err
}

// ReplaceBackupCodes makes the hashed codes the only ones of the user; none when there are no hashes.
func ReplaceBackupCodes(tx core.App, userID string, codeHashes []string, now time.Time) error {
	err := remove(tx, "remove backup codes", BackupCodes, dbx.HashExp{"user": userID})
	for _, hash := range codeHashes {
		if err != nil {
			return err
		}
		err = insert(tx, "store backup code", BackupCodes, dbx.Params{
			"id": core.GenerateDefaultRandomId(), "user": userID, "code_hash": hash, "created_at": Instant(now),
		})
	}
	return err
}

// BackupCodesLeft counts the unused codes of a user.
func BackupCodesLeft(app core.App, userID string) (int, error) {
	return queryValue[int](app, "count backup codes", `SELECT COUNT(*) FROM backup_codes WHERE user = {:user} AND used_at = ''`,
		dbx.Params{"user": userID})
}

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

// UserOfIdentity is the record id of who is known by an identity of the provider's; a missing row means nobody.
func UserOfIdentity(app core.App, issuer, subject string) (userID string, err error) {
	return queryValue[string](app, "find identity", `SELECT user FROM identities WHERE issuer = {:issuer} AND subject = {:subject}`,
		dbx.Params{"issuer": issuer, "subject": subject})
}

// HasIdentity reports whether somebody of an issuer's is known to be a user.
func HasIdentity(app core.App, userID, issuer string) (bool, error) {
	return queryValue[bool](app, "look for identities", `SELECT EXISTS (SELECT 1 FROM identities WHERE user = {:user} AND issuer = {:issuer})`,
		dbx.Params{"user": userID, "issuer": issuer})
}

// AddIdentity has a user known by an identity from now on.
func AddIdentity(tx core.App, userID, issuer, subject string, now time.Time) error {
	return exec(tx, "store identity", `INSERT INTO identities (id, user, issuer, subject, created_at, last_used_at)
		VALUES ({:id}, {:user}, {:issuer}, {:subject}, {:now}, {:now})`, dbx.Params{
		"id": core.GenerateDefaultRandomId(), "user": userID, "issuer": issuer, "subject": subject, "now": Instant(now),
	})
}

// RemoveIdentities has a user known by no identity any more, and says how many there were.
func RemoveIdentities(tx core.App, userID string) (int64, error) {
	return change(tx, "remove identities", `DELETE FROM identities WHERE user = {:user}`, dbx.Params{"user": userID})
}

// NoteIdentityUsed notes a sign-in.
func NoteIdentityUsed(tx core.App, issuer, subject string, now time.Time) error {
	return exec(tx, "note use of identity", `UPDATE identities SET last_used_at = {:now} WHERE issuer = {:issuer} AND subject = {:subject}`,
		dbx.Params{"issuer": issuer, "subject": subject, "now": Instant(now)})
}
