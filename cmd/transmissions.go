package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
)

func (p *Program) transmissionsCommand() *cobra.Command {
	command := &cobra.Command{Use: "transmissions", Short: "Deliveries to the EMR", RunE: helpOnly}
	var since, code string
	var dryRun bool
	retry := &cobra.Command{
		Use: "retry", Short: "Requeue dead letters", Args: noArgs,
		Long: "Requeues the dead letters that were last attempted since a time, each with its full number of attempts.\n" +
			"Works while the service runs, which sends them within five minutes, and can be interrupted and repeated.",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.retryTransmissions(cmd, since, code, dryRun) },
	}
	retry.Flags().StringVar(&since, "since", "", "time of the last attempt, at the earliest: 36h, 3d, a date or a date-time (required)")
	retry.Flags().StringVar(&code, "code", "", "only dead letters with this error code: "+strings.Join(emr.ErrorCodes(), ", "))
	retry.Flags().BoolVar(&dryRun, "dry-run", false, "count the dead letters, and change nothing")
	command.AddCommand(retry)
	return command
}

func (p *Program) retryTransmissions(cmd *cobra.Command, since, code string, dryRun bool) error {
	if since == "" {
		return usageError{fmt.Errorf("%s needs --since: a duration such as 36h or 3d, a date or a date-time", cmd.CommandPath())}
	}
	if code != "" && !slices.Contains(emr.ErrorCodes(), code) {
		return usageError{fmt.Errorf("--code must be one of %s", strings.Join(emr.ErrorCodes(), ", "))}
	}
	settings, err := p.settings()
	if err != nil {
		return err
	}
	from, ok := emr.ParseSince(since, settings.PracticeLocation, now())
	if !ok {
		return usageError{fmt.Errorf("--since must be a duration such as 36h or 3d, a date or a date-time, not %q", since)}
	}
	if from.After(now()) {
		return usageError{fmt.Errorf("--since must be a time that has passed, not %q", since)}
	}
	return p.withService(cmd, func(ctx context.Context, cmd *cobra.Command, s *Service) error {
		filter := emr.DeadLetterFilter{From: from, ErrorCode: code}
		if dryRun {
			counted, err := emr.CountRequeueable(s.app, filter)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%d would be queued again\n", counted)
			}
			return err
		}
		requeued, err := emr.Requeue(ctx, s.app, filter, audit.System(), now())
		fmt.Fprintf(cmd.OutOrStdout(), "%d queued again\n", requeued)
		return err
	})
}
