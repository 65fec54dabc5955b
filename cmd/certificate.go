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

// certificateSoon is how long before its end a certificate is worth a word.
const certificateSoon = 14 * 24 * time.Hour

// errNoCertificate is a listener for TLS that would fail every handshake.
var errNoCertificate = errors.New("--https needs a certificate: set VIGIL_TLS_CERT_FILE and VIGIL_TLS_KEY_FILE, or let a proxy end TLS and listen with --http")

// certificates is the certificate that is served; another one can take its place while the service runs.
type certificates struct {
	files   config.TLS
	log     *slog.Logger
	current atomic.Pointer[tls.Certificate]
}

func openCertificates(files config.TLS, log *slog.Logger, now time.Time) (*certificates, error) {
	c := &certificates{files: files, log: log}
	return c, c.reload(now)
}

// reload reads the files anew. What cannot be read changes nothing.
func (c *certificates) reload(now time.Time) error {
	read, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err != nil {
		return fmt.Errorf("load the TLS certificate: %w", err)
	}
	c.current.Store(&read)
	c.tell(now)
	return nil
}

// tell says in the log what is wrong with the certificate's time.
func (c *certificates) tell(now time.Time) {
	leaf := c.current.Load().Leaf
	switch word, useless := aboutCertificate(leaf.NotBefore, leaf.NotAfter, now); {
	case useless:
		c.log.Error("certificate", slog.String("error", word))
	case word != "":
		c.log.Warn("certificate", slog.String("warning", word))
	}
}

// certificateLook is how often the time of the certificate is looked at: a service may run for longer than its certificate.
const certificateLook = 12 * time.Hour

// watch tells again and again of a certificate that has ended, or will soon, until ctx ends.
func (c *certificates) watch(ctx context.Context, clock clockwork.Clock) {
	look := clock.NewTicker(certificateLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.Chan():
			c.tell(clock.Now())
		}
	}
}

// aboutCertificate says what is wrong with the time of a certificate, and whether it is of no use to anybody now; "" for nothing.
func aboutCertificate(from, until, now time.Time) (word string, useless bool) {
	switch left := until.Sub(now); {
	case now.Before(from):
		return "it is not valid before " + from.UTC().Format(time.RFC3339), true
	case left <= 0:
		return "it expired at " + until.UTC().Format(time.RFC3339) + ": nobody who checks it connects", true
	case left < certificateSoon:
		return "it expires at " + until.UTC().Format(time.RFC3339), false
	}
	return "", false
}

func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

// notAfter is when the certificate ends; zero without one.
func (c *certificates) notAfter() time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.current.Load().Leaf.NotAfter
}
