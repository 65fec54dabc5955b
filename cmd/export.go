package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/warehouse"
	"github.com/vigilhealth/vigil/jobs"
)

func (p *Program) exportCommand() *cobra.Command {
	var date string
	var all bool
	command := &cobra.Command{
		Use: "export", Short: "Export the tables of VIGIL_WAREHOUSE_TABLES to files for a data warehouse, with pseudonyms", Args: noArgs,
		Long: "Exports completed days that are new or changed since the last run, as the nightly job does. With --date one day,\n" +
			"with --all every day again. The same day is the same file. Works while the service runs, and can be interrupted and repeated.",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.export(cmd, date, all) },
	}
	command.Flags().StringVar(&date, "date", "", "the day to export, YYYY-MM-DD in the practice's time zone")
	command.Flags().BoolVar(&all, "all", false, "export every day again")
	command.MarkFlagsMutuallyExclusive("date", "all")
	return command
}

func (p *Program) export(cmd *cobra.Command, date string, all bool) error {
	settings, err := p.settings()
	if err != nil {
		return err
	}
	if !settings.Warehouse.Configured() {
		return errors.New("exports are disabled: set VIGIL_WAREHOUSE_FORMAT")
	}
	day := collections.ParseDay(date, settings.PracticeLocation)
	if date != "" && day.IsZero() {
		return usageError{errors.New("--date must be a day, YYYY-MM-DD")}
	}
	return p.withService(cmd, func(ctx context.Context, cmd *cobra.Command, s *Service) error {
		var done warehouse.Done
		if day.IsZero() {
			done, err = jobs.ExportNow(ctx, s.app, s.warehouse, all, s.now)
		} else {
			done, err = s.warehouse.Day(ctx, s.app, day, s.now())
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d files written, %d rows\n", done.Files, done.Rows)
		return nil
	})
}

// newWarehouse returns the warehouse exporter, or nil if exports are disabled.
func (s *Service) newWarehouse(sealer *phi.Sealer) (*warehouse.Engine, error) {
	w := s.settings.Warehouse
	if !w.Configured() {
		return nil, nil
	}
	key, err := sealer.DeriveKey("warehouse ids")
	if err != nil {
		return nil, fmt.Errorf("warehouse: %w", err)
	}
	return warehouse.New(warehouse.Options{
		Practice: w.Practice, Format: w.Format, Tables: w.Tables, Key: key, Zone: s.settings.PracticeLocation,
		Resources: fhirserver.ExportSource{Engine: s.newFHIREngine()}, Open: s.openWarehouse,
	}), nil
}

// openWarehouse opens the export folder, or the export prefix of the backup bucket.
func (s *Service) openWarehouse() (*backup.BlobStore, error) {
	w := s.settings.Warehouse
	if w.Folder != "" {
		return backup.OpenFolder(w.Folder)
	}
	return backup.OpenBucket(bucketOf(s.settings.Backup, w.Prefix))
}

// lastExport returns when the last complete export ended; known is false if exports are disabled.
func (s *Service) lastExport() (at time.Time, known bool, err error) {
	if s.warehouse == nil {
		return at, false, nil
	}
	at, err = collections.LastRunWithCount(s.app, jobs.WarehouseExport, warehouse.Exported)
	return at, true, err
}
