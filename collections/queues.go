package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Queue is what waits in the database: a condition that a small index serves, and since when each row waits.
type Queue struct{ Name, table, where, since string }

// Queues are all that wait in the database.
var Queues = []Queue{
	{"transmissions", Transmissions, waiting, "created_at"},
	{"transmission_retries", Transmissions, retrying, "created_at"},
	{"announcements", Announcements, "told_at = ''", "created_at"},
	{"pushes", PushDeliveries, "status = 'pending'", "created_at"},
	{"mails", Mails, "status = 'pending'", "created_at"},
	{"quarantine", GatewayEvents, "status = 'open'", "received_at"},
}

// Waiting is how much waits, and since when.
func (q Queue) Waiting(app core.App) (waiting int, first time.Time, err error) {
	var oldest string
	err = app.ConcurrentDB().Select("COUNT(*)", "COALESCE(MIN("+q.since+"), '')").From(q.table).Where(dbx.NewExp(q.where)).Row(&waiting, &oldest)
	return waiting, ParseInstant(oldest), err
}

// UnacknowledgedAlerts counts the alerts that nobody has acknowledged, by level.
func UnacknowledgedAlerts(app core.App) (map[string]int, error) {
	return readMap[int]("count unacknowledged alerts",
		app.ConcurrentDB().NewQuery(`SELECT level, COUNT(*) FROM alerts WHERE acknowledged = FALSE GROUP BY level`))
}
