package triage

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Trends are the last values of each kind of reading that a patient has, oldest first: those of the kind's main parameter.
type Trends map[string][]float64

// trendLength is how many readings a trend has.
const trendLength = 12

// mainColumns selects the column of each kind's main parameter; allKinds lists the kinds as JSON.
var mainColumns, allKinds = func() (columns, kinds string) {
	for _, d := range vitals.Definitions {
		columns += fmt.Sprintf(" WHEN '%s' THEN o.%s", d.Kind, d.Main().Column)
		kinds += fmt.Sprintf(",%q", d.Kind)
	}
	return columns, "[" + kinds[1:] + "]"
}()

// ReadTrends returns the trends of the given patients in one query. It walks an index from the newest reading of each kind, so a long
// history costs no more than a short one.
func ReadTrends(app core.App, patientIDs []string) (map[string]Trends, error) {
	list, err := json.Marshal(patientIDs)
	if err != nil {
		return nil, fmt.Errorf("list patients with trends: %w", err)
	}
	var rows []struct {
		Patient string `db:"patient"`
		Kind    string `db:"kind"`
		Newest  string `db:"newest"`
	}
	err = app.DB().NewQuery(`SELECT p.value AS patient, k.value AS kind, (
			SELECT json_group_array(v) FROM (
				SELECT CASE k.value ` + mainColumns + ` END AS v FROM observations o
				WHERE o.patient = p.value AND o.observation_type = k.value AND o.status = 'final'
				ORDER BY o.measured_at DESC LIMIT +{:length}
			) WHERE v IS NOT NULL
		) AS newest
		FROM json_each({:patients}) p CROSS JOIN json_each({:kinds}) k`).
		Bind(dbx.Params{"patients": string(list), "kinds": allKinds, "length": trendLength}).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("read trends: %w", err)
	}
	trends := make(map[string]Trends, len(patientIDs))
	for _, id := range patientIDs {
		trends[id] = Trends{}
	}
	for _, row := range rows {
		var values []float64
		if err := json.Unmarshal([]byte(row.Newest), &values); err != nil {
			return nil, fmt.Errorf("read a trend: %w", err)
		}
		if len(values) > 0 {
			slices.Reverse(values)
			trends[row.Patient][row.Kind] = values
		}
	}
	return trends, nil
}
