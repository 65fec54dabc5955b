package collections_test

import (
	"strings"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Matching an event uses indexes only, so its cost does not grow with the number of patients.
func TestEventMatchUsesIndexes(t *testing.T) {
	app := vigiltest.NewApp(t)
	var plan []struct {
		Step string `db:"detail"`
	}
	if err := app.DB().NewQuery("EXPLAIN QUERY PLAN " + collections.EventMatchQuery).
		Bind(dbx.Params{"value": "GW-1", "id": "gw-1", "device": "D-1", "at": "2026-01-01 00:00:00.000Z"}).All(&plan); err != nil {
		t.Fatal(err)
	}
	searches := 0
	for _, p := range plan {
		if strings.Contains(p.Step, "SCAN patients") || strings.Contains(p.Step, "SCAN device_assignments") {
			t.Error(p.Step)
		}
		if strings.Contains(p.Step, "SEARCH patients") {
			searches++
		}
	}
	if searches != 3 {
		t.Errorf("%d searches of patients: %v", searches, plan)
	}
}
