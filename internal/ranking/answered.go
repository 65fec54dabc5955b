package ranking

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
)

// answered is the alert about a critical value of the last day that somebody has acknowledged and that still stands; nil for none. What the
// patient typed since, critical or not, takes no device's place: each is looked for by itself. One that is over, by somebody's word or by what
// was measured, is not told again. Source: docs/decisions/alerts.md, "Snooze" and "Who settles what".
func answered(tx core.App, picture triage.Picture, kind string, now time.Time) (*collections.Alert, error) {
	for _, measured := range picture.CriticalSince(kind, now.Add(-stillCritical)) {
		alert, err := collections.CriticalMeasuredAt(tx, picture.PatientID, kind, string(alerts.StatusAcknowledged), measured)
		if err != nil || alert != nil {
			return alert, err
		}
	}
	return nil, nil
}
