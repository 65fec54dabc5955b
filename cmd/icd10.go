package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/billing"
)

func (p *Program) icd10Command() *cobra.Command {
	command := &cobra.Command{Use: "icd10", Short: "Diagnosis codes", RunE: helpOnly}
	load := &cobra.Command{
		Use: "import FILE", Short: "Import the full ICD-10-CM order file of CMS (icd10cm-order-YYYY.txt)", Args: oneArg("one file"),
		RunE: p.importICD10,
	}
	load.Flags().Int("year", 0, "fiscal year of the list; by default from the file's name")
	command.AddCommand(load)
	return command
}

func (p *Program) importICD10(cmd *cobra.Command, args []string) error {
	app, _, err := p.folder()
	if err != nil {
		return err
	}
	if err := bootstrap(app); err != nil {
		return err
	}
	defer func() { _ = app.ClearBootstrap() }() // every batch is stored
	if err := migrate(app); err != nil {
		return err
	}
	file, err := os.Open(args[0])
	if err != nil {
		return fmt.Errorf("open the order file: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("stat the order file: %w", err)
	}
	show := progress(cmd.ErrOrStderr(), "bytes read")
	year, err := cmd.Flags().GetInt("year")
	if err != nil {
		return err
	}
	if named := fileYear.FindString(filepath.Base(args[0])); year == 0 && named != "" {
		year, _ = strconv.Atoi(named) // four digits
	}
	stored, err := billing.ImportICD10(app, file, year, func(read int) { show(min(read, int(info.Size())), int(info.Size())) })
	if err != nil {
		return fmt.Errorf("import diagnosis codes (%d are stored): %w", stored, err)
	}
	show(int(info.Size()), int(info.Size()))
	fmt.Fprintf(cmd.OutOrStdout(), "%d codes\n", stored)
	if year == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "The codes belong to no fiscal year: import the file with --year, so that claims are validated by it.")
	}
	return nil
}

// fileYear is the year in the name of an order file.
var fileYear = regexp.MustCompile(`20[0-9]{2}`)
