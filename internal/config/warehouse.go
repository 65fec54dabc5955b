package config

import (
	"slices"
	"strings"
)

// What can leave: tables, and those of them that FHIR has resources of.
var (
	WarehouseTables    = []string{"alerts", "billing_entries", "devices", "escalations", "observations", "patients", "time_entries", "transmissions"}
	WarehouseResources = []string{"alerts", "devices", "observations", "patients"}
)

// Warehouse is what leaves each night for questions across practices. Source: docs/decisions/operating.md, "Warehouse".
type Warehouse struct {
	Format   string   `env:"FORMAT" oneof:"csv,parquet,fhir" doc:"csv, parquet or fhir; empty = nothing leaves"`
	Tables   []string `env:"TABLES" doc:"tables that leave, comma separated; empty = all that the format has"`
	Practice string   `env:"PRACTICE" is:"partition" doc:"the practice's name in the files' names; required with WAREHOUSE_FORMAT"`
	Folder   string   `env:"FOLDER" doc:"folder for the files; empty = the bucket of the backups"`
	Prefix   string   `env:"PREFIX" envDefault:"warehouse" doc:"the files' part of the bucket, which practices may share"`
}

// Configured reports whether anything leaves.
func (w Warehouse) Configured() bool { return w.Format != "" }

// checkWarehouse wants a name and a place of what leaves, and tables that there are.
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
