package config

import (
	"slices"
	"strings"
)

// Tables that can be exported, and those that have a FHIR resource.
var (
	WarehouseTables    = []string{"alerts", "billing_entries", "devices", "escalations", "observations", "patients", "time_entries", "transmissions"}
	WarehouseResources = []string{"alerts", "devices", "observations", "patients"}
)

// Warehouse configures the nightly export for analysis across practices. Source: docs/decisions/operating.md, "Warehouse".
type Warehouse struct {
	Format   string   `env:"FORMAT" oneof:"csv,parquet,fhir" doc:"csv, parquet or fhir; empty = no export"`
	Tables   []string `env:"TABLES" doc:"tables to export, comma separated; empty = all that the format supports"`
	Practice string   `env:"PRACTICE" is:"partition" doc:"the practice's name in the file names; required with WAREHOUSE_FORMAT"`
	Folder   string   `env:"FOLDER" doc:"folder for the files; empty = the backup bucket"`
	Prefix   string   `env:"PREFIX" envDefault:"warehouse" doc:"prefix of the files in a bucket that practices may share"`
}

// Configured reports whether the export is on.
func (w Warehouse) Configured() bool { return w.Format != "" }

// checkWarehouse requires a practice name and a destination, and rejects unknown tables.
func (l *loader) checkWarehouse(w Warehouse, b Backup) {
	const prefix = Prefix + "WAREHOUSE_"
	if !w.Configured() {
		return
	}
	if w.Practice == "" {
		l.report(prefix+"PRACTICE", "is required with "+prefix+"FORMAT")
	}
	if w.Folder == "" && b.S3Bucket == "" {
		l.report(prefix+"FOLDER", "or "+Prefix+"BACKUP_S3_BUCKET is required with "+prefix+"FORMAT")
	}
	known := WarehouseTables
	if w.Format == "fhir" {
		known = WarehouseResources
	}
	for _, name := range w.Tables {
		if !slices.Contains(known, name) {
			l.report(prefix+"TABLES", "must be a list of "+strings.Join(known, ", "))
		}
	}
}
