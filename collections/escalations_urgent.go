package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// byUrgency orders escalations by who has to act: those that nobody has taken, then by priority, then what has waited longest. An order is cut at
// ", ", which the list of roles must not have.
const byUrgency = `(status IN ('resolved','cancelled')), (status = 'in_progress' AND EXISTS (SELECT 1 FROM users u WHERE u.email = assigned_to
	AND u.email != '' AND u.is_active = TRUE AND u.role IN ('admin','clinical_manager','provider','nurse'))), (CASE priority WHEN 'stat' THEN 0 WHEN 'urgent' THEN 1 ELSE 2 END), ` +
	`ifnull(nullif(waits_since,''),created_at), id`

// stillOpen is true for escalations that somebody has to do something about, or for the others.
func stillOpen(active bool) dbx.Expression {
	if active {
		return dbx.NewExp("status IN ('open', 'in_progress')")
	}
	return dbx.NewExp("status IN ('resolved', 'cancelled')")
}

// TakenEscalations are the ids of those among some that somebody works on who can.
func TakenEscalations(app core.App, ids []string) (map[string]bool, error) {
	list, err := queryColumn[string](app, "look which escalations are taken",
		`SELECT e.id FROM escalations e WHERE e.id IN (SELECT value FROM json_each({:ids})) AND `+taken, dbx.Params{"ids": jsonList(ids)})
	found := make(map[string]bool, len(list))
	for _, id := range list {
		found[id] = true
	}
	return found, err
}
