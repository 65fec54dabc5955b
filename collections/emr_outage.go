package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// waitingForEMR matches deliveries that failed because of an EMR outage.
const waitingForEMR = retryScheduled + ` AND waits_for_line`

// QueuedTransmission is a delivery that can be sent.
type QueuedTransmission struct {
	ID        string `db:"id"`
	PatientID string `db:"patient"`
	// Tried: an earlier attempt failed.
	Tried bool `db:"tried"`
}

// QueuedTransmissions returns up to limit deliveries that are due or, unless dueOnly, wait for the EMR, by time of measurement; except those
// attempted since a time. This order also decides the next turn.
func QueuedTransmissions(app core.App, dueOnly bool, since, now time.Time, limit int) ([]QueuedTransmission, error) {
	return queryAll[QueuedTransmission](app, "find queued transmissions", `SELECT t.id, t.patient, t.tried FROM (
			SELECT id, patient, observation, created_at, attempt_count > 0 AS tried FROM transmissions
				WHERE `+duePending+` AND last_attempted_at < {:since}
			UNION ALL
			SELECT id, patient, observation, created_at, attempt_count > 0 AS tried FROM transmissions
				WHERE `+waitingFor+`'turn' AND status = 'pending' AND last_attempted_at < {:since}
			UNION ALL
			SELECT id, patient, observation, created_at, TRUE AS tried FROM transmissions
				WHERE `+retryScheduled+` AND (next_retry_at <= {:now} OR waits_for_line AND NOT {:due}) AND last_attempted_at < {:since}
		) t LEFT JOIN observations o ON o.id = t.observation
		ORDER BY COALESCE(o.measured_at, t.created_at), t.created_at, t.id LIMIT +{:limit}`,
		dbx.Params{"due": dueOnly, "since": FormatInstant(since), "now": FormatInstant(now), "limit": limit})
}

// LeaseQueuedTransmissions moves the named deliveries that are still queued to processing.
func LeaseQueuedTransmissions(tx core.App, ids []string, now time.Time) ([]LeasedTransmission, error) {
	return queryAll[LeasedTransmission](tx, "claim transmissions", `UPDATE transmissions SET status = 'processing', waits_for = '', claimed_at = {:now}, updated_at = {:now}
		WHERE id IN (SELECT value FROM json_each({:ids})) AND (status = 'pending' AND waits_for NOT IN ('link', '`+WaitsForDeliveryMode+`') OR `+retryScheduled+`)
		RETURNING `+leasedColumns, dbx.Params{"now": FormatInstant(now), "ids": jsonList(ids)})
}

// OutageTransmissions counts the deliveries that failed because of an outage, and returns its start: the first attempt of the earliest
// delivery that failed only once; zero for none.
func OutageTransmissions(app core.App) (count int, since time.Time, err error) {
	var first string
	err = app.DB().NewQuery(`SELECT COUNT(*), COALESCE(MIN(CASE attempt_count WHEN 1 THEN first_attempted_at END),
		MIN(last_attempted_at), '') FROM transmissions WHERE `+waitingForEMR).Row(&count, &first)
	return count, ParseInstant(first), wrap(err, "count transmissions of the outage")
}

// UnpairedAnnouncement returns the part after the prefix of the last announcement key with that prefix, unless there is a key with the same
// part after the other prefix; "" for none.
func UnpairedAnnouncement(app core.App, prefix, other string) (rest string, err error) {
	return queryValue[string](app, "find announcement", `SELECT COALESCE((SELECT substr(key, length({:prefix}) + 1) FROM announcements n
		WHERE key >= {:prefix} AND key < {:prefix} || '~' AND key = (SELECT MAX(key) FROM announcements WHERE key >= {:prefix} AND key < {:prefix} || '~')
			AND NOT EXISTS (SELECT 1 FROM announcements WHERE key = {:other} || substr(n.key, length({:prefix}) + 1))), '')`,
		dbx.Params{"prefix": prefix, "other": other})
}
