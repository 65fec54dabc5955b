package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

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
	keys := make([]any, len(emailKeys))
	for i, key := range emailKeys {
		keys[i] = key
	}
	err := app.DB().Select("email_key", "locked_until").From(LoginFailures).
		Where(dbx.In("email_key", keys...)).AndWhere(dbx.NewExp("locked_until > {:now}", dbx.Params{"now": Instant(now)})).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("read locks: %w", err)
	}
	locked := map[string]time.Time{}
	for _, row := range rows {
		locked[row.Key] = ParseInstant(row.Until)
	}
	return locked, nil
}
