package cmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/vigilhealth/vigil/internal/config"
)

// certificateWarningPeriod is how long before its expiry a certificate causes a warning.
const certificateWarningPeriod = 14 * 24 * time.Hour

// errNoCertificate reports --https without a certificate: every handshake would fail.
var errNoCertificate = errors.New("--https needs a certificate: set VIGIL_TLS_CERT_FILE and VIGIL_TLS_KEY_FILE, or let a proxy end TLS and listen with --http")

// certificates holds the served certificate, which can be replaced while the service runs.
type certificates struct {
	files   config.TLS
	log     *slog.Logger
	current atomic.Pointer[tls.Certificate]
}

func openCertificates(files config.TLS, log *slog.Logger, now time.Time) (*certificates, error) {
	c := &certificates{files: files, log: log}
	return c, c.reload(now)
}

// reload reads the files again. If they cannot be read, the current certificate stays in use.
func (c *certificates) reload(now time.Time) error {
	read, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err != nil {
		return fmt.Errorf("load the TLS certificate: %w", err)
	}
	c.current.Store(&read)
	c.logValidity(now)
	return nil
}

// logValidity logs a problem with the certificate's validity period.
func (c *certificates) logValidity(now time.Time) {
	leaf := c.current.Load().Leaf
	switch word, useless := validityProblem(leaf.NotBefore, leaf.NotAfter, now); {
	case useless:
		c.log.Error("certificate", slog.String("error", word))
	case word != "":
		c.log.Warn("certificate", slog.String("warning", word))
	}
}

// certificateCheckInterval is the interval at which the validity period is checked: a service may run longer than its certificate is valid.
const certificateCheckInterval = 12 * time.Hour

// watch logs an expired or soon expiring certificate repeatedly until ctx ends.
func (c *certificates) watch(ctx context.Context, clock clockwork.Clock) {
	look := clock.NewTicker(certificateCheckInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.Chan():
			c.logValidity(clock.Now())
		}
	}
}

// validityProblem describes a problem with the validity period, "" for none; useless means that clients reject the certificate now.
func validityProblem(from, until, now time.Time) (word string, useless bool) {
	switch left := until.Sub(now); {
	case now.Before(from):
		return "it is not valid before " + from.UTC().Format(time.RFC3339), true
	case left <= 0:
		return "it expired at " + until.UTC().Format(time.RFC3339) + ": clients that verify it do not connect", true
	case left < certificateWarningPeriod:
		return "it expires at " + until.UTC().Format(time.RFC3339), false
	}
	return "", false
}

func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

// notAfter returns when the certificate expires, or the zero time without one.
func (c *certificates) notAfter() time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.current.Load().Leaf.NotAfter
}
