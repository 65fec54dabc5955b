package transmissions

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// syncEvery is how often the trail says at most that the EMR is in step.
const syncEvery = time.Hour

// NoteSync says in the audit trail that everything due was delivered, at most once an hour and only if something was delivered since the last
// time. Each delivery has a line of its own there; this one is for people. Source: docs/decisions/dashboard.md, "Feed types and severities".
func NoteSync(app core.App, now time.Time) error {
	since, err := collections.LastAudited(app, string(audit.EMRSync))
	if err != nil {
		return err
	}
	if now.Sub(since) < syncEvery {
		return nil
	}
	f, err := ReadFigures(app, since)
	if err != nil || f.Transmitted == 0 || f.Pending+f.Processing > 0 {
		return err
	}
	return audit.Append(app, audit.Entry{
		Event: audit.EMRSync, Actor: audit.System(), ResourceType: audit.ResourceEMR,
		Changes: audit.Changes{"transmitted": {New: f.Transmitted}, "failed": {New: f.Failed}},
	}, now)
}
