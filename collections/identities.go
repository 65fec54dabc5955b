package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// UserOfIdentity returns the record id of the user with an identity of the provider. A not-found error means that there is none.
func UserOfIdentity(app core.App, issuer, subject string) (userID string, err error) {
	return queryValue[string](app, "find identity", `SELECT user FROM identities WHERE issuer = {:issuer} AND subject = {:subject}`,
		dbx.Params{"issuer": issuer, "subject": subject})
}

// HasIdentity reports whether a user has an identity of an issuer; of any if it is "".
func HasIdentity(app core.App, userID, issuer string) (bool, error) {
	return queryValue[bool](app, "look for identities", `SELECT EXISTS (SELECT 1 FROM identities WHERE user = {:user} AND {:issuer} IN ('', issuer))`,
		dbx.Params{"user": userID, "issuer": issuer})
}

// AddIdentity links an identity to a user.
func AddIdentity(tx core.App, userID, issuer, subject string, now time.Time) error {
	return exec(tx, "store identity", `INSERT INTO identities (id, user, issuer, subject, created_at, last_used_at)
		VALUES ({:id}, {:user}, {:issuer}, {:subject}, {:now}, {:now})`, dbx.Params{
		"id": core.GenerateDefaultRandomId(), "user": userID, "issuer": issuer, "subject": subject, "now": FormatInstant(now),
	})
}

// RemoveIdentities deletes a user's identities and returns their number.
func RemoveIdentities(tx core.App, userID string) (int64, error) {
	return execCounted(tx, "remove identities", `DELETE FROM identities WHERE user = {:user}`, dbx.Params{"user": userID})
}

// MarkIdentityUsed records a sign-in.
func MarkIdentityUsed(tx core.App, issuer, subject string, now time.Time) error {
	return exec(tx, "record use of identity", `UPDATE identities SET last_used_at = {:now} WHERE issuer = {:issuer} AND subject = {:subject}`,
		dbx.Params{"issuer": issuer, "subject": subject, "now": FormatInstant(now)})
}
