package collections

import (
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ToldAlert is a critical alert that people heard of as an escalation. Values are those of the reading behind it, as JSON.
type ToldAlert struct {
	ID        string  `db:"id"`
	Type      string  `db:"type"`
	Parameter string  `db:"parameter"`
	Value     float64 `db:"value"`
	Sealed    string  `db:"reported_values"`
	Values    string  `db:"measured"`
	// Gathered is sealed with the event Shown, where the alert is about several.
	Gathered string `db:"gathered"`
	Shown    string `db:"quarantine_id"`
}

// mostHeard bounds how many alerts are looked at: those of the last tellings.
const mostHeard = 60

// ToldCritical are the critical alerts by which people were told, since a time, of the escalations that the system opened for a patient and
// that are open, or were changed since another time; with each the others of its reading, the one told last first. Left out is what was
// taken back, and what only says again that somebody is waited for: it names no value that is new. columns are the observation's whose values are wanted. The tables are joined in the order written, which is the one with an
// index for each.
func ToldCritical(app core.App, patientID string, since, closedSince time.Time, columns []string) ([]ToldAlert, error) {
	return queryAll[ToldAlert](app, "find what was told", `SELECT b.id, b.type, b.parameter, COALESCE(b.value, 0) AS value, b.reported_values, b.quarantine_id,
			COALESCE((SELECT gathered FROM gateway_events WHERE id = b.quarantine_id AND b.quarantine_id != ''), '') AS gathered,
			json_array(o.`+strings.Join(columns, ", o.")+`) AS measured
		FROM escalations e CROSS JOIN announcements n ON n.key >= 'escalation ' || e.id AND n.key < 'escalation ' || e.id || '!'
			CROSS JOIN alerts a ON a.id = n.alert CROSS JOIN alerts b ON b.id = a.id OR b.observation != '' AND b.observation = a.observation
			LEFT JOIN observations o ON o.id = b.observation
		WHERE e.patient = {:patient} AND e.created_by = 'system' AND (e.status IN ('open', 'in_progress') OR e.updated_at >= {:closed})
			AND n.kind = 'escalation_opened' AND n.created_at >= {:since} AND b.level = 'critical' AND b.late = FALSE AND (b.snoozed = FALSE OR b.id = a.id)
			AND b.resolution_reason != 'withdrawn' AND COALESCE(o.status, '') != 'entered_in_error'
		ORDER BY n.created_at DESC, b.id DESC LIMIT +{:most}`, dbx.Params{
		"patient": patientID, "since": Instant(since), "closed": Instant(closedSince), "most": mostHeard,
	})
}
