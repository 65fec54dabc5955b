package messaging

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Twilio signs with HMAC-SHA1, for which collisions of SHA-1 do not matter
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vigilhealth/vigil/internal/fault"
)

// Forms of a provider.
const (
	FormTwilio = "twilio"
	FormHTTP   = "http"
	FormFile   = "file"
)

// Callbacks verifies the requests of a provider: status reports and texts from patients.
type Callbacks struct {
	Form   string
	Secret string
	// PublicURL is the address under which the provider reaches the service; Twilio signs it.
	PublicURL string
}

// timestampTolerance is the greatest age of a signed request. Source: Standard Webhooks, "Verifying signatures".
const timestampTolerance = 5 * time.Minute

// Verify checks the signature of a request to a path, with its query. Faults: messaging_not_configured (Unavailable), invalid_signature and
// stale_timestamp (Unauthenticated). Source: Twilio, "Validating requests are coming from Twilio"; Standard Webhooks.
func (c Callbacks) Verify(header http.Header, target string, body []byte, now time.Time) error {
	switch {
	case c.Secret == "" || c.Form != FormTwilio && c.Form != FormHTTP:
		return fault.New(fault.Unavailable, "messaging_not_configured", "No provider of messages with callbacks is configured.")
	case c.Form == FormTwilio:
		form, err := url.ParseQuery(string(body))
		if err == nil && hmac.Equal([]byte(header.Get("X-Twilio-Signature")), []byte(TwilioSignature(c.Secret, c.PublicURL+target, form))) {
			return nil
		}
		return invalidSignature()
	}
	return c.verifyStandard(header, body, now)
}

func invalidSignature() error {
	return fault.New(fault.Unauthenticated, "invalid_signature", "Invalid signature of the provider.")
}

// TwilioSignature returns the signature of a form posted to an address: the address, then each name and value in the order of names.
func TwilioSignature(secret, address string, form url.Values) string {
	var text strings.Builder
	text.WriteString(address)
	for _, name := range slices.Sorted(maps.Keys(form)) {
		values := slices.Compact(slices.Sorted(slices.Values(form[name])))
		for _, value := range values {
			text.WriteString(name + value)
		}
	}
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(text.String()))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// verifyStandard checks a request signed by Standard Webhooks, by the time that is handed in.
func (c Callbacks) verifyStandard(header http.Header, body []byte, now time.Time) error {
	key, err := standard.NewWebhook(c.Secret)
	if err != nil {
		return fault.New(fault.Unavailable, "messaging_not_configured", "The secret of the provider of messages cannot be read.").Because(err)
	}
	if key.VerifyIgnoringTimestamp(body, header) != nil {
		return invalidSignature()
	}
	seconds, err := strconv.ParseInt(header.Get(standard.HeaderWebhookTimestamp), 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)); err != nil || age.Abs() > timestampTolerance {
		return fault.New(fault.Unauthenticated, "stale_timestamp", "The timestamp of the request is out of range.")
	}
	return nil
}
