package cmd

import (
	"log/slog"
	"time"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/sockets"
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
func newGate(settings config.Settings, log *slog.Logger) *sockets.Gate {
	c := settings.Connections
	if files, known := mostFiles(); known {
		if fits := fitting(c.Max, files); c.Max > fits {
			log.Warn("fewer connections than VIGIL_MAX_CONNECTIONS: the process may not have so many files open", slog.Int("connections", fits))
			c.Max = fits
		} else if c.Max == 0 {
			c.Max = fits
		}
	}
	return sockets.NewGate(sockets.Options{
		Max: c.Max, MaxPerAddress: c.MaxPerAddress, Proxies: c.TrustedProxies, ProxyHeaders: settings.TrustedProxyHeaders,
		ReadHeaderTimeout: c.ReadHeaderTimeout, ReadBodyTimeout: c.ReadBodyTimeout, IdleTimeout: idleTime, Clock: time.Now,
	})
}
