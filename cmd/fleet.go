package cmd

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/cmd/fleet"
)

func (p *Program) fleetCommand() *cobra.Command {
	command := &cobra.Command{Use: "fleet", Short: "Many practices from one list", RunE: helpOnly}
	var out string
	var dry bool
	render := &cobra.Command{
		Use: "render LIST --out FOLDER", Short: "Render environments, proxy lines, scrape targets and chart values from a list of practices (YAML)", Args: oneArg("one list"),
		RunE: func(cmd *cobra.Command, args []string) error { return renderFleet(cmd, args[0], out, dry) },
	}
	render.Flags().StringVar(&out, "out", "", "output folder; previously rendered files that are no longer needed are removed")
	render.Flags().BoolVar(&dry, "check", false, "change nothing, and fail if the folder does not match the list")
	command.AddCommand(render)
	return command
}

func renderFleet(cmd *cobra.Command, name, out string, dry bool) error {
	if out == "" {
		return usageError{errors.New("--out is required: the output folder")}
	}
	text, err := os.ReadFile(name) //nolint:gosec // a path from the operator
	if err != nil {
		return fmt.Errorf("read the list: %w", err)
	}
	list, err := fleet.Read(text)
	if err != nil {
		return err
	}
	files, err := list.Render()
	if err != nil {
		return err
	}
	done, err := fleet.Write(out, files, dry)
	if err != nil {
		return err
	}
	for _, one := range done.Written {
		fmt.Fprintf(cmd.OutOrStdout(), "written  %s\n", one)
	}
	for _, one := range done.Removed {
		fmt.Fprintf(cmd.OutOrStdout(), "removed  %s\n", one)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d practices, %d files, %d of them new or changed, %d removed\n", len(list.Practices), len(files), len(done.Written), len(done.Removed))
	if dry && len(done.Written)+len(done.Removed) > 0 {
		return errors.New("the folder does not match the list; nothing was changed")
	}
	return nil
}
