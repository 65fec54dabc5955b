package cmd

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
)

func (p *Program) feesCommand() *cobra.Command {
	shipped := strings.Join(billing.BundledFeeYears(), ", ")
	command := &cobra.Command{Use: "fees", Short: "The fee schedule", RunE: helpOnly}
	command.AddCommand(
		&cobra.Command{
			Use: "import FILE|YEAR", Short: "Import a fee list (CSV), or the one shipped for a year (" + shipped + ") after checking it",
			Args: oneArg("one file or year"), RunE: p.importFees,
		},
		&cobra.Command{
			Use: "show YEAR", Short: "Print the list shipped for a year (" + shipped + "), to be checked and completed", Args: oneArg("one year"),
			RunE: func(cmd *cobra.Command, args []string) error {
				file, known := billing.BundledFees(args[0])
				if !known {
					return fmt.Errorf("no list is shipped for %q, only for %s", args[0], shipped)
				}
				_, err := cmd.OutOrStdout().Write(file)
				return err
			},
		})
	return command
}

func (p *Program) importFees(cmd *cobra.Command, args []string) error {
	file, shipped := billing.BundledFees(args[0])
	if !shipped {
		var err error
		if file, err = os.ReadFile(args[0]); err != nil {
			return fmt.Errorf("read the list: %w", err)
		}
	}
	s, err := p.openService(cmd)
	if err != nil {
		return err
	}
	defer func() { _ = s.app.ClearBootstrap() }() // the list is stored already
	done, err := billing.ImportFees(s.app, file, audit.System(), now().In(s.settings.PracticeLocation))
	if err != nil {
		return plain(err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d rows: %d new, %d replaced, %d as before\n", done.Rows, done.Created, done.Replaced, done.Unchanged)
	return nil
}
