package collections

import (
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
	_, err := tx.NonconcurrentDB().Insert(SignInSteps, dbx.Params{
		"id": core.GenerateDefaultRandomId(), "user": step.UserID, "token_hash": tokenHash, "key_hash": step.KeyHash, "expires_at": Instant(expires),
	}).Execute()
	return wrap(err, "store sign-in step")
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
	_, err := tx.NonconcurrentDB().Delete(table, dbx.NewExp("expires_at <= {:now}", dbx.Params{"now": Instant(now)})).Execute()
	return wrap(err, "forget what has ended in %s", table)
}
