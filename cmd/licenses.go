package cmd

import (
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/cmd/licenses"
)

func (p *Program) licensesCommand() *cobra.Command {
	var list bool
	command := &cobra.Command{
		Use: "licenses", Short: "Print the licenses of Vigil and of everything in it, with their texts", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return licenses.WriteList(cmd.OutOrStdout())
			}
			return licenses.Write(cmd.OutOrStdout())
		},
	}
	command.Flags().BoolVar(&list, "list", false, "a line for each part, without the texts")
	return command
}
