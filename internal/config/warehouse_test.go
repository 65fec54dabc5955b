package config_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/config"
)

// TestWarehouse checks that the export is off by default and requires a practice name, a destination and known tables.
func TestWarehouse(t *testing.T) {
	if s, err := config.Load([]string{"VIGIL_WAREHOUSE_PRACTICE=elm-street"}); err != nil || s.Warehouse.Configured() {
		t.Errorf("without a format: %v", err)
	}
	const whole = "VIGIL_WAREHOUSE_FORMAT=fhir VIGIL_WAREHOUSE_PRACTICE=elm-street VIGIL_WAREHOUSE_FOLDER=/srv VIGIL_WAREHOUSE_TABLES=patients,alerts"
	for given, want := range map[string]string{
		whole: "",
		"VIGIL_WAREHOUSE_FORMAT=csv VIGIL_WAREHOUSE_PRACTICE=a VIGIL_BACKUP_S3_BUCKET=b": "",
		"VIGIL_WAREHOUSE_FORMAT=xls VIGIL_WAREHOUSE_PRACTICE=a VIGIL_WAREHOUSE_FOLDER=/": "VIGIL_WAREHOUSE_FORMAT: must be",
		"VIGIL_WAREHOUSE_FORMAT=csv VIGIL_WAREHOUSE_FOLDER=/srv":                         "VIGIL_WAREHOUSE_PRACTICE: is required",
		"VIGIL_WAREHOUSE_FORMAT=csv VIGIL_WAREHOUSE_PRACTICE=a":                          "VIGIL_WAREHOUSE_FOLDER: or VIGIL_BACKUP_S3_BUCKET is required",
		whole + ",time_entries":                           "VIGIL_WAREHOUSE_TABLES: must be a list of alerts, devices, observations, patients",
		strings.Replace(whole, "elm-street", "../elm", 1): "VIGIL_WAREHOUSE_PRACTICE: must be",
	} {
		_, err := config.Load(strings.Fields(given))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}
