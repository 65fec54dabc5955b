package webhooks

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vigilhealth/vigil/collections"
)

const (
	secretPrefix = "whsec_"
	secretSize   = 32 // between 24 and 64. Source: Standard Webhooks, "Signature scheme"
)

// secretOverlap is how long the previous secret signs beside the new one.
const secretOverlap = 24 * time.Hour

func newSecret() string {
	key := make([]byte, secretSize)
	rand.Read(key) // never fails, by the contract of crypto/rand
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// errNoSecret prevents signing with an empty key, which the library would accept.
var errNoSecret = errors.New("a webhook has no secret")

// signatureHeaders returns the headers of a request. The id is that of the delivery, the same in every attempt; the timestamp is that of the
// attempt.
func signatureHeaders(w *collections.Webhook, id string, body []byte, now time.Time) (map[string]string, error) {
	signatures := []string{}
	for _, secret := range []string{w.Secret(), w.PreviousSecret(now)} {
		if secret == "" {
			continue
		}
		key, err := standard.NewWebhook(secret)
		if err != nil {
			return nil, fmt.Errorf("read the secret of a webhook: %w", err)
		}
		signature, err := key.Sign(id, now, body)
		if err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
		signatures = append(signatures, signature)
	}
	if len(signatures) == 0 {
		return nil, errNoSecret
	}
	return map[string]string{
		standard.HeaderWebhookID: id, standard.HeaderWebhookTimestamp: strconv.FormatInt(now.Unix(), 10),
		standard.HeaderWebhookSignature: strings.Join(signatures, " "),
	}, nil
}

// Format prints a placeholder in place of the secret.
func (CreatedWebhook) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[webhook secret]") }

// LogValue logs a placeholder in place of the secret.
func (CreatedWebhook) LogValue() slog.Value { return slog.StringValue("[webhook secret]") }
