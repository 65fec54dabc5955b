package cmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

func (p *Program) simulateCommand() *cobra.Command {
	options := sandbox.SimulateOptions{Now: now}
	var seed int64
	command := &cobra.Command{
		Use: "simulate", Short: "Send signed readings like a device gateway", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if options.URL == "" {
				return usageError{fmt.Errorf("--url is required")}
			}
			settings, err := p.settings()
			if err != nil {
				return err
			}
			if options.Secret = settings.Gateway.WebhookSecret.Reveal(); options.Secret == "" {
				return fmt.Errorf("VIGIL_GATEWAY_WEBHOOK_SECRET is not set: the simulator signs with it")
			}
			options.URL = strings.TrimSuffix(options.URL, "/")
			if !strings.HasSuffix(options.URL, webhookPath) {
				options.URL += webhookPath + "/"
			}
			options.Seed, options.Out = uint64(seed), cmd.OutOrStdout() //nolint:gosec // any seed is valid
			tally, err := sandbox.Simulate(cmd.Context(), options)
			fmt.Fprintln(cmd.OutOrStdout(), tally)
			if err == nil && tally.Events > 0 && tally.Delivered == 0 {
				err = fmt.Errorf("%s accepted nothing: is it running with the same VIGIL_GATEWAY_WEBHOOK_SECRET?", options.URL)
			}
			return err
		},
	}
	command.Flags().StringVar(&options.URL, "url", "", "address of the service")
	command.Flags().IntVar(&options.Count, "patients", 10, "number of simulated patients")
	command.Flags().Float64Var(&options.Rate, "rate", 1, "readings per second")
	command.Flags().DurationVar(&options.For, "for", time.Minute, "how long")
	command.Flags().Int64Var(&seed, "seed", 1, "the same seed sends the same readings")
	return command
}

const webhookPath = "/api/v1/gateway/webhook"
