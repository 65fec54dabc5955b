package cmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/jobs"
	"github.com/vigilhealth/vigil/routes/metrics"
)

// idleTime is how long a connection may wait for its next request.
const idleTime = 2 * time.Minute

// otherFiles is how many files the database, its readers and neighbours need beside connections.
const otherFiles = 500

// fitting is a greatest number of connections that leaves files for the database.
func fitting(connections int, files uint64) int {
	left := max(1, int(min(files, 1<<31))-otherFiles)
	if connections == 0 {
		return left
	}
	return min(connections, left)
}

// newGate makes what limits connections. Deadlines of connections are the machine's, whatever clock the service goes by.
func newGate(settings config.Settings, log *slog.Logger) *ratelimit.ConnLimiter {
	c := settings.Connections
	if files, known := mostFiles(); known {
		if fits := fitting(c.Max, files); c.Max > fits {
			log.Warn("fewer connections than VIGIL_MAX_CONNECTIONS: the process may not have so many files open", slog.Int("connections", fits))
			c.Max = fits
		} else if c.Max == 0 {
			c.Max = fits
		}
	}
	return ratelimit.NewConnLimiter(ratelimit.ConnOptions{
		Max: c.Max, MaxPerAddress: c.MaxPerAddress, Proxies: c.TrustedProxies, ProxyHeaders: settings.TrustedProxyHeaders,
		ReadHeaderTimeout: c.ReadHeaderTimeout, ReadBodyTimeout: c.ReadBodyTimeout, IdleTimeout: idleTime, Clock: time.Now,
	})
}

// serveMetrics serves /metrics on an address of its own, which is not for the world: there is no sign-in. Without the setting there is none.
func (s *Service) serveMetrics(ctx context.Context) error {
	if s.settings.MetricsAddr == "" {
		return nil
	}
	s.metrics.Jobs(jobs.Names())
	err := s.metrics.Watch(metrics.Sources{
		App: s.app, Clock: s.now, Waiting: s.writer.QueueDepth, Health: s.monitor.Latest, Outage: s.worker.Outage, Connections: s.gate.Counts,
		DiskFree: func() (uint64, bool) { return diskFree(s.app.DataDir()) }, CertificateEnds: func() time.Time { return s.certificates.notAfter() }, Exported: s.lastExport, Log: s.log,
	})
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
	gate := ratelimit.NewConnLimiter(ratelimit.ConnOptions{
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

// secure demands TLS 1.3, and lets the webhook's own server name do with 1.2. The version is agreed before the path is known, hence the name.
// Source: docs/decisions/limits.md, "TLS 1.3 and 1.2".
func secure(server *tls.Config, settings config.TLS, served *certificates) {
	server.MinVersion = tls.VersionTLS13
	if served != nil {
		server.GetCertificate = served.get
	}
	if settings.WebhookHost == "" {
		return
	}
	webhook := server.Clone()
	webhook.MinVersion, webhook.NextProtos = tls.VersionTLS12, []string{"h2", "http/1.1"}
	server.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if hello.ServerName == settings.WebhookHost {
			return webhook, nil
		}
		return nil, nil //nolint:nilnil // the standard library's way to say "the usual one"
	}
}
