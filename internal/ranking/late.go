package ranking

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// overtaken reports whether something at least as reliable was measured after the reading behind an alert: of one that came late it is then
// no news how the patient was. Source: docs/decisions/alerts.md, "Late readings".
func overtaken(tx core.App, patientID string, alert alerts.Open) (bool, error) {
	var kinds []vitals.Kind
	var columns []string
	for _, p := range vitals.Watched {
		if p.Group == alert.Type {
			kinds, columns = append(kinds, p.Kinds...), append(columns, p.Column)
		}
	}
	if len(columns) == 0 {
		return false, nil
	}
	return collections.MeasuredAfter(tx, patientID, kinds, columns, alert.MeasuredAt, vitals.OriginPatient.Settles(alert.Origin))
}
