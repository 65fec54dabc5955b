package routes

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// countReported completes alerts about what became no reading: how many events each is about, and what the latest of them said.
// Source: docs/decisions/observations.md, "Many implausible values".
func countReported(app core.App, page []*collections.Alert, views []alertView) error {
	var events []string
	for _, alert := range page {
		if id := alert.QuarantineID(); id != "" {
			events = append(events, id)
		}
	}
	gathered, err := collections.GatheringsOf(app, events...)
	if err != nil {
		return err
	}
	for i, alert := range page {
		if alert.QuarantineID() == "" {
			continue
		}
		views[i].ReportedCount, views[i].LatestValues = new(1), views[i].ReportedValues
		if g := gathered[alert.QuarantineID()]; g.Count > 0 {
			views[i].ReportedCount, views[i].LatestValues = &g.Count, g.Latest
		}
	}
	return nil
}
