package alerts

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// ChangeFilter narrows the change log; zero values do not.
type ChangeFilter struct {
	PatientID, Field, ChangedBy string
	// From and To bound the time of the change, both inclusive.
	From, To time.Time
	// CareTeamOf keeps the patients whose care team this user (record id) belongs to.
	CareTeamOf string
}

// Changes returns a page of the change log, newest first, and how many entries there are in all.
// Source: docs/decisions/alerts.md, "Threshold-change filters".
func Changes(app core.App, f ChangeFilter, offset, limit int) ([]*collections.ThresholdChange, int, error) {
	conditions := collections.Conditions{}.Equal("patient", f.PatientID).Equal("field", f.Field).Equal("changed_by", f.ChangedBy).
		Between("changed_at", f.From, f.To).OnCareTeamOf(f.CareTeamOf)
	return collections.PageOfThresholdChanges(app, conditions, offset, limit)
}
