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

// idleTimeout is how long a connection may wait for its next request.
const idleTimeout = 2 * time.Minute

// reservedFiles is how many open files the database, its readers and outgoing connections need.
const reservedFiles = 500

// maxConnections returns the connection limit that leaves enough open files for the database.
func maxConnections(connections int, files uint64) int {
	left := max(1, int(min(files, 1<<31))-reservedFiles)
	if connections == 0 {
		return left
	}
	return min(connections, left)
}

// newConnLimiter returns the connection limiter. It always uses the machine's clock, because connection deadlines do.
func newConnLimiter(settings config.Settings, log *slog.Logger) *ratelimit.ConnLimiter {
	c := settings.Connections
	if files, known := openFileLimit(); known {
		if fits := maxConnections(c.Max, files); c.Max > fits {
			log.Warn("connection limit reduced below VIGIL_MAX_CONNECTIONS: raise the process's limit of open files", slog.Int("connections", fits))
			c.Max = fits
		} else if c.Max == 0 {
			c.Max = fits
		}
	}
	return ratelimit.NewConnLimiter(ratelimit.ConnOptions{
		Max: c.Max, MaxPerAddress: c.MaxPerAddress, Proxies: c.TrustedProxies, ProxyHeaders: settings.TrustedProxyHeaders,
		ReadHeaderTimeout: c.ReadHeaderTimeout, ReadBodyTimeout: c.ReadBodyTimeout, IdleTimeout: idleTimeout, Clock: time.Now,
	})
}

// serveMetrics serves /metrics on a separate, internal address without sign-in, if the setting has one.
func (s *Service) serveMetrics(ctx context.Context) error {
	if s.settings.MetricsAddr == "" {
		return nil
	}
	s.metrics.InitJobs(jobs.Names())
	var leaseHeld func() bool
	if s.lease != nil {
		leaseHeld = s.lease.MayWrite
	}
	err := s.metrics.Watch(metrics.Sources{
		App: s.app, Clock: s.now, LeaseHeld: leaseHeld, Waiting: s.writer.QueueDepth, Health: s.monitor.Latest, Outage: s.worker.Outage, Connections: s.connLimiter.Counts,
		Zone: s.settings.PracticeLocation, ReplicaAge: s.replicaAge(), Damaged: s.inspector.Damaged, DiskFree: func() (uint64, bool) { return diskFree(s.app.DataDir()) }, CertificateEnds: func() time.Time { return s.certificates.notAfter() }, LastExport: s.lastExport, Log: s.log,
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
		Max: 64, ReadHeaderTimeout: server.ReadHeaderTimeout, ReadBodyTimeout: 5 * time.Second, IdleTimeout: idleTimeout, Clock: time.Now,
	})
	gate.ConfigureServer(server)
	s.background.Go(func() {
		if err := server.Serve(gate.Listen(listener, false)); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("metrics server stopped: /metrics is unavailable until the service restarts", slog.Any("error", err))
		}
	})
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

// secure requires TLS 1.3, but accepts 1.2 for the webhook's own host name: the version is negotiated before the path is known.
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
		return nil, nil //nolint:nilnil // nil, nil selects the default configuration
	}
}
