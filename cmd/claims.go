package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/clearinghouse"
	"github.com/vigilhealth/vigil/internal/fault"
)

func (p *Program) claimsCommand() *cobra.Command {
	command := &cobra.Command{Use: "claims", Short: "Exchange claims and responses with the clearinghouse as files in a folder", RunE: helpOnly}
	var month, out string
	export := &cobra.Command{
		Use: "export", Short: "Write the reviewed claims of a month as 837P, and mark them submitted", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.exportClaims(cmd, month, out) },
	}
	export.Flags().StringVar(&month, "month", "", "the month of service, YYYY-MM")
	export.Flags().StringVar(&out, "out", "", "the folder to write to")
	_ = export.MarkFlagRequired("month")
	_ = export.MarkFlagRequired("out")
	command.AddCommand(export, &cobra.Command{
		Use: "import FILE|DIR", Short: "Apply response files: 999, 277CA, 835", Args: oneArg("one file or folder"),
		RunE: p.importClaims,
	})
	return command
}

// withClearinghouse opens the data folder with its keys, whether or not the service runs, for a command about claims.
func (p *Program) withClearinghouse(cmd *cobra.Command, work func(app core.App, house clearinghouse.Engine, by audit.Actor, now time.Time) error) error {
	return p.withService(cmd, func(_ context.Context, _ *cobra.Command, s *Service) error {
		return work(s.app, clearinghouse.Engine{Billing: s.billing}, audit.Actor{Type: audit.BySystem, Email: "system"}, now())
	})
}

// exportClaims writes batches of the claims that pass preflight, and prints the errors of the others.
func (p *Program) exportClaims(cmd *cobra.Command, month, out string) error {
	span, ok := billing.MonthSpan(month)
	if !ok {
		return usageError{errors.New("--month must be YYYY-MM")}
	}
	if info, err := os.Stat(out); err != nil || !info.IsDir() {
		return usageError{errors.New("--out must be an existing folder")}
	}
	return p.withClearinghouse(cmd, func(app core.App, house clearinghouse.Engine, by audit.Actor, now time.Time) error {
		ids, err := collections.EntriesToSubmit(app, span.Start, span.End, house.Billing.Claims.Submitter.Usage)
		if err != nil {
			return err
		}
		all, left := len(ids), 0
		for some := range slices.Chunk(ids, clearinghouse.MaxLines) {
			stay, err := exportBatch(cmd, app, house, some, out, by, now)
			if err != nil {
				return err
			}
			left += stay
		}
		if left > 0 {
			return fmt.Errorf("%d of %d lines were not sent", left, all)
		}
		return nil
	})
}

// exportBatch sends the claims that pass preflight and returns how many it left out. If the file cannot be written, the stored batch can be fetched
// from the API.
func exportBatch(cmd *cobra.Command, app core.App, house clearinghouse.Engine, ids []string, out string, by audit.Actor, now time.Time) (left int, err error) {
	row, err := house.SendBatch(app, ids, by, now)
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		lines, _ := refused.Extra["lines"].([]clearinghouse.LineErrors)
		if len(lines) == 0 {
			return 0, err
		}
		against := map[string]bool{}
		for _, l := range lines {
			against[l.EntryID] = true
			for _, f := range l.Errors {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s (%s)\n", l.EntryID, f.Message, f.Field)
			}
		}
		var rest []string
		for _, id := range ids {
			if !against[id] {
				rest = append(rest, id)
			}
		}
		if len(rest) == 0 {
			return len(ids), nil
		}
		if len(rest) == len(ids) {
			return 0, err // the errors concern none of these entries
		}
		left, err = exportBatch(cmd, app, house, rest, out, by, now)
		return left + len(ids) - len(rest), err
	}
	if err != nil {
		return 0, err
	}
	file, err := collections.BatchFile(app, row.ID)
	if err != nil {
		return 0, err
	}
	path := filepath.Join(out, row.Number+".837")
	unfinished := filepath.Join(out, "."+row.Number+".837") // a program that watches the folder must see complete files only
	err = os.WriteFile(unfinished, []byte(file.Reveal()), 0o600)
	if err == nil {
		err = os.Rename(unfinished, path)
	}
	if err != nil {
		return 0, fmt.Errorf("write batch %s, which is stored and can be fetched from the API: %w", row.Number, err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d claims, %d lines, %s\n", path, row.Claims, row.Lines, billing.Cents(row.ChargeCents))
	return 0, nil
}

// importClaims applies a file, or all files of a folder in the order of their names. A rejected file does not prevent the others from being applied.
func (p *Program) importClaims(cmd *cobra.Command, args []string) error {
	files, err := filesOf(args[0])
	if err != nil {
		return err
	}
	return p.withClearinghouse(cmd, func(app core.App, house clearinghouse.Engine, by audit.Actor, now time.Time) error {
		failed := 0
		for _, path := range files {
			file, err := os.ReadFile(path) //nolint:gosec // a path from the operator
			if err != nil {
				return fmt.Errorf("read a response file: %w", err)
			}
			done, err := house.Import(app, file, by, now)
			switch refused, ok := errors.AsType[*fault.Error](err); {
			case ok && refused.Kind != fault.Internal:
				failed++
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", path, refused.Detail)
			case err != nil:
				return err
			case done.Repeated:
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, applied before\n", path, done.Response.Type())
			default:
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %d applied, %d unmatched\n", path, done.Response.Type(), done.Applied, len(done.Response.Unmatched()))
			}
		}
		if failed > 0 {
			return fmt.Errorf("%d of %d files were rejected", failed, len(files))
		}
		return nil
	})
}

// filesOf returns the visible files of a folder by name, or the single file.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("find the files: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	found, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read the folder: %w", err)
	}
	var files []string
	for _, f := range found {
		if f.Type().IsRegular() && !strings.HasPrefix(f.Name(), ".") {
			files = append(files, filepath.Join(path, f.Name()))
		}
	}
	return files, nil
}
