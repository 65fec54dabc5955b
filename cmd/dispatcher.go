package cmd

import (
	"context"
	"errors"
	"log/slog"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/events/directory"
	"github.com/vigilhealth/vigil/internal/events/dispatcher"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/routes/metrics"
)

func (p *Program) dispatcherCommand() *cobra.Command {
	return &cobra.Command{
		Use: "dispatcher", Short: "Hold device events without one owner, and deliver them when a practice registers the device", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			settings, err := p.eventSettings()
			if err != nil {
				return err
			}
			log := newLog(cmd.OutOrStdout(), settings.SlogLevel())
			d, closeStream, err := newDispatcher(ctx, settings, log)
			if err != nil {
				return err
			}
			defer closeStream()
			registry := prometheus.NewRegistry()
			registry.MustRegister(metrics.EventCollector{State: d.State, Clock: now})
			if err := serveRegistry(ctx, settings.MetricsAddr, registry, log); err != nil {
				return err
			}
			log.Info("dispatcher started")
			d.Run(ctx)
			return nil
		},
	}
}

// newDispatcher returns a dispatcher with a directory that is loaded in the background.
func newDispatcher(ctx context.Context, settings config.Settings, log *slog.Logger) (d *dispatcher.Dispatcher, closeStream func(), err error) {
	e := settings.Events
	identities, err := config.AgeIdentities(e.OrganizationIdentities)
	if err == nil && len(identities) == 0 {
		err = errors.New("VIGIL_ORGANIZATION_IDENTITIES is required: events without one owner are sealed for it")
	}
	if err != nil {
		return nil, nil, err
	}
	stream, err := openEvents(settings, "vigil dispatcher", log)
	if err != nil {
		return nil, nil, err
	}
	devices := directory.New(stream.JetStream(), log)
	go func() {
		createEvents(ctx, settings, stream, log)
		devices.Run(ctx)
	}()
	return dispatcher.New(dispatcher.Options{
		Stream: stream, Directory: devices, Adapters: gateway.NewAdapters(settings.Gateway, settings.Clinical.MeasuredAtMaxFuture),
		DirectoryKey: []byte(e.DirectoryKey.Reveal()), Identities: identities, Clock: now, Log: log,
	}), stream.Close, nil
}
