package cmd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

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
	if word := aboutCertificate(read.Leaf.NotBefore, read.Leaf.NotAfter, now); word != "" {
		c.log.Warn("certificate", slog.String("warning", word))
	}
	return nil
}

// aboutCertificate says what is wrong with the time of a certificate; "" for nothing.
func aboutCertificate(from, until, now time.Time) string {
	switch left := until.Sub(now); {
	case now.Before(from):
		return "it is not valid before " + from.UTC().Format(time.RFC3339)
	case left <= 0:
		return "it expired at " + until.UTC().Format(time.RFC3339) + ": nobody who checks it connects"
	case left < certificateSoon:
		return "it expires at " + until.UTC().Format(time.RFC3339)
	}
	return ""
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
