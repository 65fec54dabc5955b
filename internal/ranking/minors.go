package ranking

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/triage"
)

// Expect ranks a minor anew of whom other kinds are expected from now on: there may be no bounds for them. For an adult nothing follows.
// Source: docs/decisions/alerts.md, "Minors".
func Expect(tx core.App, patientID string, now time.Time) error {
	group, err := collections.AgeGroupOf(tx, patientID)
	if err != nil || group != collections.AgeMinor {
		return err
	}
	_, err = triage.Rescore(tx, patientID, now)
	return err
}
