package migrations_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A folder of an earlier build gets the bounds that the templates have gained. A template that the practice changed, signed or deleted stays.
func TestBoundsOfTemplates(t *testing.T) {
	shipped := `{"blood_glucose": {"critical_low": 54, "low": 63, "high": 140, "critical": 200}, "pulse": {"high": 115, "low": null}}`
	for name, test := range map[string]struct {
		bounds, signed, used string
		want                 string // part of the bounds
		version              int
	}{
		"as shipped":        {shipped, "", "", `"fasting_high":95`, 1},
		"in use":            {shipped, "", `[{"id": 6, "key": "gestational_diabetes"}]`, `"fasting_high":95`, 2},
		"changed elsewhere": {strings.Replace(shipped, "115", "125", 1), "", "", `"pulse":{"high":125,"low":null}`, 1},
		"changed":           {strings.Replace(shipped, "140", "130", 1), "", "", `"high": 130, "critical": 200}`, 1},
		"bound removed":     {strings.Replace(shipped, "200", "null", 1), "", "", `"critical": null}`, 1},
		"signed":            {shipped, "Dr. Grey", "", `"critical": 200}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			app := vigiltest.NewApp(t)
			run := func(sql string, args map[string]any) {
				t.Helper()
				if _, err := app.DB().NewQuery(sql).Bind(args).Execute(); err != nil {
					t.Fatal(err)
				}
			}
			run("DELETE FROM _migrations WHERE file = '1795939200_bounds.go'", nil)
			run("DELETE FROM threshold_templates WHERE key = 'copd_oxygen'", nil)
			run("UPDATE threshold_templates SET bounds = {:bounds}, signed_off_by = {:signed}, version = 1 WHERE key = 'gestational_diabetes'",
				map[string]any{"bounds": test.bounds, "signed": test.signed})
			if test.used != "" {
				run("UPDATE thresholds SET templates = {:used}", map[string]any{"used": test.used})
			}
			if err := app.RunAppMigrations(); err != nil {
				t.Fatal(err)
			}
			var bounds string
			var version, numbers int
			err := app.DB().NewQuery("SELECT bounds, version, (SELECT COUNT(*) FROM threshold_templates WHERE key = 'copd_oxygen') FROM threshold_templates "+
				"WHERE key = 'gestational_diabetes'").Row(&bounds, &version, &numbers)
			if err != nil || !strings.Contains(bounds, test.want) || version != test.version || numbers != 1 {
				t.Errorf("version %d of %s, %d new ones, %v", version, bounds, numbers, err)
			}
		})
	}
}
