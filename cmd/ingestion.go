package cmd

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
)

func (p *Program) ingestionCommand() *cobra.Command {
	ingestion := &cobra.Command{Use: "ingestion", Short: "Readings that did not come by themselves", RunE: helpOnly}
	ingestion.AddCommand(&cobra.Command{
		Use: "replay", Short: "Try device events again that could not be placed or read", Args: noArgs,
		Long: "Tries every open and rejected device event again, after something was put right: a patient enrolled, a device\n" +
			"assigned, a mapping mended. Works beside a running service, and can be interrupted and repeated.",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.besideService(cmd, p.replay) },
	})
	var dryRun bool
	load := &cobra.Command{
		Use: "import FILE", Short: "Import readings from a CSV file",
		Long: "Imports readings from a CSV file whose first line names the columns; docs/operations.md has the format. What is stored\n" +
			"already stays as it is, so an import can be repeated. Works beside a running service.",
		Args: oneArg("one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.besideService(cmd, func(ctx context.Context, cmd *cobra.Command, s *Service) error {
				return s.importReadings(ctx, cmd, args[0], dryRun)
			})
		},
	}
	load.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be stored, and store nothing")
	ingestion.AddCommand(load)
	return ingestion
}

// besideService runs work on the data folder with the engines of the service, which may be running meanwhile.
func (p *Program) besideService(cmd *cobra.Command, work func(context.Context, *cobra.Command, *Service) error) error {
	if err := p.needsDatabase(); err != nil {
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
	done, err := s.intake.Replay(ctx, s.app, now, progress(cmd.ErrOrStderr(), "events tried"))
	fmt.Fprintf(cmd.OutOrStdout(), "%d stored, %d known, %d handled, %d still waiting\n", done.Stored, done.Duplicates, done.Processed, done.Pending)
	return err
}

// importReadings imports a file; lines that were not taken are named one by one, and make the import a failure.
func (s *Service) importReadings(ctx context.Context, cmd *cobra.Command, path string, dryRun bool) error {
	file, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return fmt.Errorf("open the file: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read
	total, err := countLines(file)
	if err != nil {
		return err
	}
	table, err := gateway.OpenCSV(file, s.settings.Clinical.MeasuredAtMaxFuture)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var refused []error
	show := progress(cmd.ErrOrStderr(), "lines read")
	done, err := s.intake.Import(ctx, s.app, table, ingest.ImportOptions{
		DryRun: dryRun, Clock: now, OnProgress: func(lines int) { show(lines, total) },
		OnRejected: func(line int, reason string) { refused = append(refused, fmt.Errorf("line %d: %s", line, reason)) },
	})
	verb := "stored"
	if dryRun {
		verb = "would be stored"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d %s, %d known, %d refused\n", done.Stored, verb, done.Duplicates, done.Rejected)
	return errors.Join(append(refused, err)...)
}

// countLines counts the lines below the column names, and goes back to the start.
func countLines(file *os.File) (lines int, err error) {
	table := csv.NewReader(file)
	table.FieldsPerRecord, table.LazyQuotes, table.ReuseRecord = -1, true, true
	for {
		if _, err := table.Read(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, fmt.Errorf("read the file: %w", err)
		}
		lines++
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, fmt.Errorf("go back to the start of the file: %w", err)
	}
	return max(0, lines-1), nil
}
