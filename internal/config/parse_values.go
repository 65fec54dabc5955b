package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/vigilhealth/vigil/internal/authz"
)

// splitList splits at commas and white space.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// day validates a calendar date.
func day(text string) (string, error) {
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return "", errors.New("must be a day such as 2026-01-31")
	}
	return text, nil
}

func parseBool(text string) (bool, error) {
	value, err := strconv.ParseBool(strings.ToLower(text))
	if err != nil {
		return false, errors.New("must be true or false")
	}
	return value, nil
}

func parseNumber(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, errors.New("must be a number")
	}
	return n, nil
}

func parseInt(text string) (int, error) {
	value, err := strconv.Atoi(text)
	if err != nil {
		return 0, errors.New("must be a whole number")
	}
	return value, nil
}

// unitOf returns the unit of a plain number by the suffix of the setting's name, or 0 without a suffix.
func unitOf(name string) time.Duration {
	switch {
	case strings.HasSuffix(name, "_SECONDS"):
		return time.Second
	case strings.HasSuffix(name, "_MINUTES"):
		return time.Minute
	case strings.HasSuffix(name, "_DAYS"):
		return 24 * time.Hour
	default:
		return 0
	}
}

func parseDuration(text string, unit time.Duration) (time.Duration, error) {
	if unit > 0 {
		count, err := strconv.Atoi(text)
		if err != nil || count < 0 || count > 100_000 { // 100,000 days fit into a Duration
			return 0, errors.New("must be a whole number from 0 to 100000")
		}
		return time.Duration(count) * unit, nil
	}
	value, err := time.ParseDuration(text)
	if err != nil || value < 0 {
		return 0, errors.New("must be a duration such as 30s or 5m")
	}
	return value, nil
}

func parseDurations(text string) ([]time.Duration, error) {
	var durations []time.Duration
	for _, item := range splitList(text) {
		value, err := parseDuration(item, 0)
		if err != nil {
			return nil, errors.New("must be a list of durations such as 1s,2s,4s")
		}
		durations = append(durations, value)
	}
	return durations, nil
}

// parseRoles returns the listed roles: nil if the setting is absent, and none for "none".
func parseRoles(text string) ([]authz.Role, error) {
	if strings.TrimSpace(text) == "none" {
		return []authz.Role{}, nil
	}
	var roles []authz.Role
	for _, item := range splitList(text) {
		role := authz.Role(item)
		if !role.Valid() {
			return nil, fmt.Errorf("must be none or a list of roles: %s", joinRoles(authz.Roles))
		}
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles, nil
}

func joinRoles(roles []authz.Role) string {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = string(role)
	}
	return strings.Join(names, ", ")
}

// parsePrefixes parses address ranges; a bare address is a range of one.
func parsePrefixes(text string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for i, item := range splitList(text) {
		prefix, err := netip.ParsePrefix(item)
		if err != nil {
			address, addressErr := netip.ParseAddr(item)
			if addressErr != nil || address.Zone() != "" {
				return nil, fmt.Errorf("entry %d must be a range such as 52.22.142.0/24", i+1)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

// parseRateLimit parses "1000/1h"; "0" is no limit.
func parseRateLimit(text string) (RateLimit, error) {
	if text == "0" {
		return RateLimit{}, nil
	}
	refused := errors.New("must be requests per time such as 1000/1h, or 0 for no limit")
	count, window, _ := strings.Cut(text, "/")
	limit, err := strconv.Atoi(strings.TrimSpace(count))
	if err != nil || limit < 1 {
		return RateLimit{}, refused
	}
	span, err := time.ParseDuration(strings.TrimSpace(window))
	if err != nil || span < time.Second || span%time.Second != 0 {
		return RateLimit{}, refused
	}
	return RateLimit{Limit: limit, Window: span}, nil
}

const redacted = "[secret]"

// Secret is a setting that fmt, slog and encoding/json do not print; Reveal returns the value. fmt does not call the methods of unexported
// fields, so a struct with a Secret in such a field must implement Format itself.
type Secret string

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }

// Format, LogValue and MarshalJSON hide the secret.
func (Secret) Format(s fmt.State, _ rune)   { _, _ = io.WriteString(s, redacted) }
func (Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// Format, LogValue and MarshalJSON hide the settings.
func (Settings) Format(s fmt.State, _ rune)   { _, _ = io.WriteString(s, "[settings]") }
func (Settings) LogValue() slog.Value         { return slog.StringValue("[settings]") }
func (Settings) MarshalJSON() ([]byte, error) { return []byte(`"[settings]"`), nil }

// RateLimit allows Limit requests in any Window of whole seconds. The zero value is no limit.
type RateLimit struct {
	Limit  int
	Window time.Duration
}

// IsUnlimited reports whether there is no limit.
func (r RateLimit) IsUnlimited() bool { return r.Limit == 0 }

// Configured reports whether webhooks can be verified.
func (g Gateway) Configured() bool { return g.WebhookSecret != "" }

// Configured reports whether the EMR's client id and base address are set. Source: docs/decisions/emr.md, "EMR not configured".
func (e EMR) Configured() bool { return e.ClientID != "" && e.FHIRBaseURL != "" }

// BackendConfigured reports whether the backend-services flow can run, which deliveries require.
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
func (s SMTP) Configured() bool { return s.Host != "" && s.From != "" }

// Configured reports whether the service terminates TLS with the operator's certificate.
func (t TLS) Configured() bool { return t.CertFile != "" && t.KeyFile != "" }
