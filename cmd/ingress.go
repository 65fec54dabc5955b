package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/events/directory"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/routes/ingress"
)

func (p *Program) ingressCommand() *cobra.Command {
	var addr string
	command := &cobra.Command{
		Use: "ingress", Short: "Receive the device vendors' webhooks for several practices", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := p.eventSettings()
			if err != nil {
				return err
			}
			if settings.Events.OrganizationRecipient == "" {
				return errors.New("VIGIL_ORGANIZATION_RECIPIENT is required: events without one owner are sealed for it")
			}
			log := newLog(cmd.OutOrStdout(), settings.SlogLevel())
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runIngress(ctx, settings, addr, log, func(address string) { log.Info("listening", slog.String("address", address)) })
		},
	}
	command.Flags().StringVar(&addr, "http", "127.0.0.1:8080", "address to listen on")
	return command
}

// eventSettings returns the settings, with a stream.
func (p *Program) eventSettings() (config.Settings, error) {
	settings, err := p.settings()
	if err == nil && !settings.Events.Configured() {
		err = errors.New("VIGIL_EVENTS_URL is required")
	}
	return settings, err
}

// openEvents connects to the stream under a name.
func openEvents(settings config.Settings, name string, log *slog.Logger) (*events.Stream, error) {
	e := settings.Events
	return events.Connect(events.Options{
		URLs: e.URL, Credentials: []byte(e.Credentials.Reveal()), Name: name, Stream: e.Stream, Replicas: e.Replicas, Retention: e.Retention,
		MaxBytes: int64(e.MaxBytes), Log: log,
	})
}

// createEvents creates stream and directory, and tries again until ctx ends: the servers may start later.
func createEvents(ctx context.Context, settings config.Settings, stream *events.Stream, log *slog.Logger) {
	for ctx.Err() == nil {
		err := stream.Create(ctx)
		if err == nil {
			err = directory.Create(ctx, stream.JetStream(), settings.Events.Replicas)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		log.Warn("event stream cannot be created; trying again", slog.Any("error", err))
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// runIngress serves until ctx ends, and then finishes active requests.
func runIngress(ctx context.Context, settings config.Settings, addr string, log *slog.Logger, listening func(address string)) error {
	stream, err := openEvents(settings, "vigil ingress", log)
	if err != nil {
		return err
	}
	defer stream.Close()
	devices := directory.New(stream.JetStream(), log)
	go func() {
		createEvents(ctx, settings, stream, log)
		devices.Run(ctx)
	}()
	registry := prometheus.NewRegistry()
	handler := ingress.Handler(ingress.Options{
		Adapters: gateway.NewAdapters(settings.Gateway, settings.Clinical.MeasuredAtMaxFuture), Directory: devices, Stream: stream,
		DirectoryKey: []byte(settings.Events.DirectoryKey.Reveal()), Organization: settings.Events.OrganizationRecipient,
		Sources: settings.Gateway.AllowedCIDRs, Address: ingress.ClientAddress(settings.Connections.TrustedProxies, settings.TrustedProxyHeaders),
		Metrics: ingress.NewMetrics(registry), Log: log, Clock: now,
	})
	if err := serveRegistry(ctx, settings.MetricsAddr, registry, log); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr) //nolint:noctx // the listener lives as long as the process
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	limiter := newConnLimiter(settings, log)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: settings.Connections.ReadHeaderTimeout}
	limiter.ConfigureServer(server)
	drained := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(drained)
		drain, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		_ = server.Shutdown(drain) // a request that is cut off was not acknowledged
	})
	listening(localURL("http", listener.Addr()))
	if err := server.Serve(limiter.Listen(listener, false)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the ingress: %w", err)
	}
	<-drained
	return nil
}

// serveRegistry serves the metrics of a registry on an internal address, if there is one.
func serveRegistry(ctx context.Context, addr string, registry *prometheus.Registry, log *slog.Logger) error {
	if addr == "" {
		return nil
	}
	listener, err := net.Listen("tcp", addr) //nolint:noctx // the listener lives as long as the process
	if err != nil {
		return fmt.Errorf("listen for metrics on %s: %w", addr, err)
	}
	pages := http.NewServeMux()
	pages.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: pages, WriteTimeout: 30 * time.Second, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics server stopped: /metrics is unavailable until the process restarts", slog.Any("error", err))
		}
	}()
	return nil
}
