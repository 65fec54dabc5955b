package cmd

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/billing"
)

func (p *Program) rulesCommand() *cobra.Command {
	command := &cobra.Command{Use: "rules", Short: "The billing rules of each year", RunE: helpOnly}
	command.AddCommand(
		&cobra.Command{Use: "show YEAR", Short: "Print the rules of a year, each line with its source", Args: oneArg("one year"), RunE: showRules},
		&cobra.Command{
			Use: "preview FILE", Short: "Print what a file of rules would change, before it is built into the program", Args: oneArg("one file"), RunE: previewRules,
		})
	return command
}

func showRules(cmd *cobra.Command, args []string) error {
	var years []int
	for _, pack := range billing.RulePacks() {
		if fmt.Sprint(pack.Year) == args[0] {
			out := json.NewEncoder(cmd.OutOrStdout())
			out.SetIndent("", "  ")
			return out.Encode(pack)
		}
		years = append(years, pack.Year)
	}
	return fmt.Errorf("there are no rules for %q, only for %v", args[0], years)
}

func previewRules(cmd *cobra.Command, args []string) error {
	file, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	pack, err := billing.ReadRulePack(file)
	if err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	text := func(value *string) string {
		if value == nil {
			return "none"
		}
		return *value
	}
	for _, c := range billing.ChangesIn(pack) {
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s -> %s\n", c.Item, text(c.Before), text(c.After)); err != nil {
			return err
		}
	}
	return nil
}
