package cmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
)

func (p *Program) ingestionCommand() *cobra.Command {
	ingestion := &cobra.Command{Use: "ingestion", Short: "Replay quarantined device events, and import readings", RunE: helpOnly}
	ingestion.AddCommand(&cobra.Command{
		Use: "replay", Short: "Process quarantined device events again", Args: noArgs,
		Long: "Processes every open and rejected device event again, after its cause was corrected: a patient enrolled, a device\n" +
			"assigned, a mapping fixed. Works while the service runs, and can be interrupted and repeated.",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.withService(cmd, p.replay) },
	})
	var dryRun bool
	var zoneName string
	load := &cobra.Command{
		Use: "import FILE", Short: "Import readings from a CSV file",
		Long: "Imports readings from a CSV file with a header line; docs/operations.md describes the format. What is stored\n" +
			"already stays unchanged, so an import can be repeated. Works while the service runs.",
		Args: oneArg("one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var zone *time.Location
			if zoneName != "" {
				var err error
				if zone, err = time.LoadLocation(zoneName); err == nil && zone == time.Local {
					err = errors.New("the zone Local is the host's, not necessarily the file's")
				}
				if err != nil {
					return usageError{fmt.Errorf("--zone must be a name such as America/Chicago: %w", err)}
				}
			}
			return p.withService(cmd, func(ctx context.Context, cmd *cobra.Command, s *Service) error {
				return s.importReadings(ctx, cmd, args[0], zone, dryRun)
			})
		},
	}
	load.Flags().StringVar(&zoneName, "zone", "", "zone of times without an offset, such as America/Chicago")
	load.Flags().BoolVar(&dryRun, "dry-run", false, "report what would be stored, and store nothing")
	ingestion.AddCommand(load)
	return ingestion
}

// withService runs work on the data folder with the service's engines, while the service may be running.
func (p *Program) withService(cmd *cobra.Command, work func(context.Context, *cobra.Command, *Service) error) error {
	if err := p.requireDatabase(); err != nil {
		return err
	}
	s, err := p.openService(cmd)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return errors.Join(work(ctx, cmd, s), s.app.ClearBootstrap())
}

func (p *Program) replay(ctx context.Context, cmd *cobra.Command, s *Service) error {
	done, err := s.pipeline.Replay(ctx, s.app, now, progress(cmd.ErrOrStderr(), "events tried"))
	fmt.Fprintf(cmd.OutOrStdout(), "%d stored, %d known, %d handled, %d still waiting\n", done.Stored, done.Duplicates, done.Processed, done.Pending)
	return err
}

// importReadings imports a file. It reports each rejected line, and fails if there are any.
func (s *Service) importReadings(ctx context.Context, cmd *cobra.Command, path string, zone *time.Location, dryRun bool) error {
	file, err := os.Open(path) //nolint:gosec // a path from the operator
	if err != nil {
		return fmt.Errorf("open the file: %w", err)
	}
	defer file.Close() //nolint:errcheck // read only
	table, err := gateway.OpenCSV(file, gateway.CSVOptions{MaxFuture: s.settings.Clinical.MeasuredAtMaxFuture, Zone: zone})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var refused []error
	leftOut := map[string]int{} // stored lines by column
	show := progress(cmd.ErrOrStderr(), "lines read")
	done, err := s.pipeline.Import(ctx, s.app, table, ingest.ImportOptions{
		DryRun: dryRun, Clock: now, OnProgress: func(lines int) { show(lines, table.Lines) },
		OnRejected: func(line int, reason string) { refused = append(refused, fmt.Errorf("line %d: %s", line, reason)) },
		OnLeftOut:  func(column string) { leftOut[column]++ },
	})
	verb := "stored"
	if dryRun {
		verb = "would be stored"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d %s, %d known, %d refused\n", done.Stored, verb, done.Duplicates, done.Rejected)
	for _, column := range slices.Sorted(maps.Keys(leftOut)) {
		fmt.Fprintf(cmd.OutOrStdout(), "%s left out of %d of them\n", column, leftOut[column])
	}
	return errors.Join(append(refused, err)...)
}
