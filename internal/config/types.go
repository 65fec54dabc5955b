package config

import (
	"fmt"
	"io"
	"log/slog"
	"time"
)

const hidden = "[secret]"

// Secret is a setting that fmt, slog and encoding/json refuse to show; Reveal takes it out. fmt does not ask the
// values in unexported fields, so a struct that keeps a Secret in one must itself refuse to print.
type Secret string

// Reveal returns the secret in the clear.
func (s Secret) Reveal() string { return string(s) }

// Format shows nothing of the secret.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// LogValue shows nothing of the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalJSON shows nothing of the secret.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// Format shows nothing of the settings.
func (Settings) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[settings]") }

// LogValue shows nothing of the settings.
func (Settings) LogValue() slog.Value { return slog.StringValue("[settings]") }

// MarshalJSON shows nothing of the settings.
func (Settings) MarshalJSON() ([]byte, error) { return []byte(`"[settings]"`), nil }

// RateLimit allows Limit requests in any Window of whole seconds. The zero value is no limit.
type RateLimit struct {
	Limit  int
	Window time.Duration
}

// Unlimited reports whether the limit is switched off.
func (r RateLimit) Unlimited() bool { return r.Limit == 0 }

// Configured reports whether webhooks can be verified.
func (g Gateway) Configured() bool { return g.WebhookSecret != "" }

// Configured reports whether the EMR is known at all: client id and base address.
// Source: docs/decisions/emr.md, "EMR not configured".
func (e EMR) Configured() bool { return e.ClientID != "" && e.FHIRBaseURL != "" }

// BackendConfigured reports whether the backend-services flow can run, without which nothing is delivered.
func (e EMR) BackendConfigured() bool {
	return e.Configured() && e.TokenURL != "" && e.PrivateKey != nil
}

// InteractiveConfigured reports whether a user can connect with the authorization-code flow.
func (e EMR) InteractiveConfigured() bool {
	return e.Configured() && e.TokenURL != "" && e.AuthorizeURL != ""
}

// Configured reports whether there is a key pair to sign pushes with.
func (v VAPID) Configured() bool { return v.PublicKey != "" && v.PrivateKey != "" }

// Configured reports whether mail can be sent.
func (m SMTP) Configured() bool { return m.Host != "" && m.From != "" }

// Configured reports whether the service ends TLS itself with a certificate of the operator's.
func (t TLS) Configured() bool { return t.CertFile != "" && t.KeyFile != "" }
