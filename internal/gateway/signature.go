package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/vigilhealth/vigil/internal/fault"
)

// The headers of a delivery.
const (
	SignatureHeader = "X-Gateway-Signature"
	TimestampHeader = "X-Gateway-Timestamp"
)

const signaturePrefix = "sha256="

// Secrets are the shared webhook secrets. Previous still verifies while the vendor changes to Current; an empty secret verifies nothing.
// Source: docs/decisions/gateway.md, "Secret rotation".
type Secrets struct{ Current, Previous string }

// Format keeps secrets out of logs and error texts.
func (Secrets) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[secrets]") }

// LogValue keeps secrets out of structured logs.
func (Secrets) LogValue() slog.Value { return slog.StringValue("[secrets]") }

// MarshalJSON keeps secrets out of structured logs that print the struct around them.
func (Secrets) MarshalJSON() ([]byte, error) { return []byte(`"[secrets]"`), nil }

// SecretName is the secret that verified a delivery. It is logged, so that operators see when the previous one is unused.
type SecretName string

// The secret names.
const (
	CurrentSecret  SecretName = "current"
	PreviousSecret SecretName = "previous"
)

// Sign returns the value of SignatureHeader for a body: "sha256=" and the hex HMAC-SHA256 under the secret.
func Sign(secret string, body []byte) string {
	return signaturePrefix + hex.EncodeToString(mac(secret, body))
}

func mac(secret string, body []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(body)
	return h.Sum(nil)
}

// Verify checks the signature over the raw body, then the age of the delivery. Faults: webhook_not_configured (Unavailable),
// invalid_signature and stale_timestamp (Unauthenticated). Source: docs/decisions/gateway.md, "Webhook signature failure", "Timestamp
// header and replay" and "Secret rotation".
func (g ContractAdapter) Verify(header http.Header, body []byte, now time.Time) (SecretName, error) {
	if g.Secrets == (Secrets{}) {
		return "", notConfigured()
	}
	name := g.Secrets.match(header.Values(SignatureHeader), body)
	if name == "" {
		return "", fault.New(fault.Unauthenticated, "invalid_signature", "Invalid webhook signature.")
	}
	if err := g.checkAge(header.Get(TimestampHeader), now); err != nil {
		return "", fault.New(fault.Unauthenticated, "stale_timestamp",
			"The webhook timestamp is missing, malformed or out of range.").Because(err)
	}
	return name, nil
}

func notConfigured() error {
	return fault.New(fault.Unavailable, "webhook_not_configured", "The gateway webhook is not configured.")
}

// match returns the secret of a signature that fits the body, or "". Both secrets are always computed, so that the response time does not
// depend on which one fits.
func (s Secrets) match(headers []string, body []byte) SecretName {
	current, previous := mac(s.Current, body), mac(s.Previous, body)
	var byCurrent, byPrevious bool
	for _, header := range headers {
		for text := range strings.FieldsFuncSeq(header, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
			digits, ok := strings.CutPrefix(text, signaturePrefix)
			if !ok {
				continue
			}
			sum, err := hex.DecodeString(digits)
			if err != nil {
				continue // not a signature; another one in the header may be
			}
			byCurrent = hmac.Equal(sum, current) || byCurrent
			byPrevious = hmac.Equal(sum, previous) || byPrevious
		}
	}
	switch {
	case byCurrent && s.Current != "":
		return CurrentSecret
	case byPrevious && s.Previous != "":
		return PreviousSecret
	}
	return ""
}

// checkAge compares the delivery's Unix seconds with now. The header is not signed and proves nothing; it only limits what can be replayed
// before deduplication.
func (g ContractAdapter) checkAge(text string, now time.Time) error {
	sent, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return errors.New("the timestamp is not a whole number of seconds")
	}
	if tolerance := int64(g.Tolerance / time.Second); tolerance > 0 &&
		(sent < now.Unix()-tolerance || sent > now.Unix()+tolerance) {
		return errors.New("the timestamp is too far from the server's time")
	}
	return nil
}

// SourceAllowed reports whether a delivery may come from addr. An empty list allows every address. Source: docs/decisions/gateway.md,
// "Source addresses".
func SourceAllowed(addr netip.Addr, allowed []netip.Prefix) bool {
	return len(allowed) == 0 || slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) })
}

// sharedSecret authenticates a vendor that sends a secret in a header.
type sharedSecret struct {
	secret  string
	headers []string
}

// Verify looks for the secret as the whole value of one of the headers, or after a scheme. All are compared, each in constant time. Faults:
// webhook_not_configured (Unavailable) and invalid_secret (Unauthenticated).
func (s sharedSecret) Verify(header http.Header, _ []byte, _ time.Time) (SecretName, error) {
	if s.secret == "" {
		return "", notConfigured()
	}
	shown := 0
	for _, name := range s.headers {
		for _, value := range header.Values(name) {
			_, afterScheme, _ := strings.Cut(value, " ")
			shown |= s.matches(value) | s.matches(strings.TrimSpace(afterScheme))
		}
	}
	if shown == 0 {
		return "", fault.New(fault.Unauthenticated, "invalid_secret", "The webhook secret is missing or wrong.")
	}
	return CurrentSecret, nil
}

// matches compares hashes, so that the length is not revealed.
func (s sharedSecret) matches(value string) int {
	sent, wanted := sha256.Sum256([]byte(value)), sha256.Sum256([]byte(s.secret))
	return subtle.ConstantTimeCompare(sent[:], wanted[:])
}
