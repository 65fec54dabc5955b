package cmd

import (
	"crypto/tls"
	"fmt"

	"github.com/vigilhealth/vigil/internal/config"
)

// secure demands TLS 1.3, and lets the webhook's own server name do with 1.2. The version is agreed before the path is known, hence the name.
// Source: docs/decisions/limits.md, "TLS 1.3 and 1.2".
func secure(server *tls.Config, settings config.TLS) error {
	server.MinVersion = tls.VersionTLS13
	if settings.Configured() {
		certificate, err := tls.LoadX509KeyPair(settings.CertFile, settings.KeyFile)
		if err != nil {
			return fmt.Errorf("load the TLS certificate: %w", err)
		}
		server.GetCertificate, server.Certificates = nil, []tls.Certificate{certificate}
	}
	if settings.WebhookHost == "" {
		return nil
	}
	webhook := server.Clone()
	webhook.MinVersion, webhook.NextProtos = tls.VersionTLS12, []string{"h2", "http/1.1"}
	server.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if hello.ServerName == settings.WebhookHost {
			return webhook, nil
		}
		return nil, nil //nolint:nilnil // the standard library's way to say "the usual one"
	}
	return nil
}
