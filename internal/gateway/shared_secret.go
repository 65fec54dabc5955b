package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
)

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
