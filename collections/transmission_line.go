package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// stalled are those that failed for the line's sake.
const stalled = retrying + ` AND waits_for_line`

// WaitingTransmission is one that is to be sent.
type WaitingTransmission struct {
	ID        string `db:"id"`
	PatientID string `db:"patient"`
	// Tried: a delivery of it has failed.
	Tried bool `db:"tried"`
}

// WaitingTransmissions are up to limit transmissions that are due, or wait for the line unless dueOnly, in the order in which they were
// measured; but none that was attempted since a time. What waits for its turn has it by this order.
func WaitingTransmissions(app core.App, dueOnly bool, since, now time.Time, limit int) ([]WaitingTransmission, error) {
	return queryAll[WaitingTransmission](app, "find waiting transmissions", `SELECT t.id, t.patient, t.tried FROM (
			SELECT id, patient, observation, created_at, attempt_count > 0 AS tried FROM transmissions
				WHERE `+waiting+` AND last_attempted_at < {:since}
			UNION ALL
			SELECT id, patient, observation, created_at, attempt_count > 0 AS tried FROM transmissions
				WHERE `+waitingFor+`'turn' AND status = 'pending' AND last_attempted_at < {:since}
			UNION ALL
			SELECT id, patient, observation, created_at, TRUE AS tried FROM transmissions
				WHERE `+retrying+` AND (next_retry_at <= {:now} OR waits_for_line AND NOT {:due}) AND last_attempted_at < {:since}
		) t LEFT JOIN observations o ON o.id = t.observation
		ORDER BY COALESCE(o.measured_at, t.created_at), t.created_at, t.id LIMIT +{:limit}`,
		dbx.Params{"due": dueOnly, "since": Instant(since), "now": Instant(now), "limit": limit})
}

// ClaimWaitingTransmissions moves those of the named transmissions that still wait to processing.
func ClaimWaitingTransmissions(tx core.App, ids []string, now time.Time) ([]ClaimedTransmission, error) {
	return queryAll[ClaimedTransmission](tx, "claim transmissions", `UPDATE transmissions SET status = 'processing', waits_for = '', claimed_at = {:now}, updated_at = {:now}
		WHERE id IN (SELECT value FROM json_each({:ids})) AND (status = 'pending' AND waits_for != 'link' OR `+retrying+`)
		RETURNING `+claimed, dbx.Params{"now": Instant(now), "ids": jsonList(ids)})
}

// StalledTransmissions counts what failed for the line's sake, and says since when: when the first that knows no other trouble was tried; zero
// for none.
func StalledTransmissions(app core.App) (count int, since time.Time, err error) {
	var first string
	err = app.DB().NewQuery(`SELECT COUNT(*), COALESCE(MIN(CASE attempt_count WHEN 1 THEN first_attempted_at END),
		MIN(last_attempted_at), '') FROM transmissions WHERE `+stalled).Row(&count, &first)
	return count, ParseInstant(first), wrap(err, "count stalled transmissions")
}

// Unpaired is what follows a prefix in the last announcement with that prefix, unless another has the same behind the other prefix; "" for none.
func Unpaired(app core.App, prefix, other string) (rest string, err error) {
	return queryValue[string](app, "find announcement", `SELECT COALESCE((SELECT substr(key, length({:prefix}) + 1) FROM announcements n
		WHERE key >= {:prefix} AND key < {:prefix} || '~' AND key = (SELECT MAX(key) FROM announcements WHERE key >= {:prefix} AND key < {:prefix} || '~')
			AND NOT EXISTS (SELECT 1 FROM announcements WHERE key = {:other} || substr(n.key, length({:prefix}) + 1))), '')`,
		dbx.Params{"prefix": prefix, "other": other})
}
