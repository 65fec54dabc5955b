package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

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
