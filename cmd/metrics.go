package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/vigilhealth/vigil/internal/metrics"
	"github.com/vigilhealth/vigil/internal/sockets"
)

// serveMetrics serves /metrics on an address of its own, which is not for the world: there is no sign-in. Without the setting there is none.
func (s *Service) serveMetrics(ctx context.Context) error {
	if s.settings.MetricsAddr == "" {
		return nil
	}
	err := s.metrics.Watch(metrics.Sources{App: s.app, Clock: s.now, Waiting: s.writer.QueueDepth, Health: s.monitor.Latest, Connections: s.gate.Counts, Log: s.log})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.settings.MetricsAddr) //nolint:noctx // the listener lives as long as the process
	if err != nil {
		return fmt.Errorf("listen for metrics on %s: %w", s.settings.MetricsAddr, err)
	}
	pages := http.NewServeMux()
	pages.Handle("GET /metrics", s.metrics.Handler(s.log))
	server := &http.Server{Handler: pages, WriteTimeout: 30 * time.Second, ReadHeaderTimeout: 5 * time.Second}
	gate := sockets.NewGate(sockets.Options{
		Max: 64, ReadHeaderTimeout: server.ReadHeaderTimeout, ReadBodyTimeout: 5 * time.Second, IdleTimeout: idleTime, Clock: time.Now,
	})
	gate.Secure(server)
	s.background.Go(func() {
		if err := server.Serve(gate.Listen(listener, false)); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("metrics not served", slog.Any("error", err))
		}
	})
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}
