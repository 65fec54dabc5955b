package transmissions

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// syncEvery is how often the trail says at most that the EMR is in step.
const syncEvery = time.Hour

// NoteSync says in the audit trail that everything due was delivered, at most once an hour and only if something was delivered since the last
// time. Each delivery has a line of its own there; this one is for people. Source: docs/decisions/dashboard.md, "Feed types and severities".
func NoteSync(app core.App, now time.Time) error {
	var last string
	err := app.DB().NewQuery(`SELECT recorded_at FROM audit_log WHERE event = {:event} ORDER BY id DESC LIMIT 1`).
		Bind(dbx.Params{"event": string(audit.EMRSync)}).Row(&last)
	if err != nil && !collections.Missing(err) {
		return fmt.Errorf("find the last synchronisation: %w", err)
	}
	since := collections.ParseInstant(last)
	if now.Sub(since) < syncEvery {
		return nil
	}
	f, err := ReadFigures(app, since)
	if err != nil || f.Transmitted == 0 || f.Pending+f.Processing > 0 {
		return err
	}
	return audit.Append(app, audit.Entry{
		Event: audit.EMRSync, Actor: audit.System(), ResourceType: "EMR",
		Changes: audit.Changes{"transmitted": {New: f.Transmitted}, "failed": {New: f.Failed}},
	}, now)
}
