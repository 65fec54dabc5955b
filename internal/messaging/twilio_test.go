package messaging

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Source: the example of Twilio's documentation, "Validating requests".
func TestTwilioSignature(t *testing.T) {
	form := url.Values{"CallSid": {"CA1234567890ABCDE"}, "Caller": {"+12349013030"}, "Digits": {"1234"}, "From": {"+12349013030"}, "To": {"+18005551212"}}
	const signature = "0/KCTR6DLpKmkAf8muzZqo1nDgQ="
	if got := base64.StdEncoding.EncodeToString(TwilioSignature("12345", "https://mycompany.com/myapp.php?foo=1&bar=2", form)); got != signature {
		t.Errorf("signed %s", got)
	}
	provider := Twilio{Secret: "12345", PublicURL: "https://mycompany.com"}
	verify := func(signature, target, body string) error {
		return provider.Verify(http.Header{"X-Twilio-Signature": {signature}}, target, []byte(body), time.Time{})
	}
	if err := verify(signature, "/myapp.php?foo=1&bar=2", form.Encode()); err != nil {
		t.Error(err)
	}
	for _, address := range []string{"https://mycompany.com:443", "https://mycompany.com:8443"} { // Twilio signs with and without the port
		if err := (Twilio{Secret: "12345", PublicURL: address}).Verify(http.Header{"X-Twilio-Signature": {signature}}, "/myapp.php?foo=1&bar=2", []byte(form.Encode()), time.Time{}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	withPort := base64.StdEncoding.EncodeToString(TwilioSignature("12345", "https://mycompany.com:443/myapp.php?foo=1&bar=2", form))
	if err := verify(withPort, "/myapp.php?foo=1&bar=2", form.Encode()); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"another path": verify(signature, "/myapp.php?foo=1", form.Encode()), "another value": verify(signature, "/myapp.php?foo=1&bar=2", form.Encode()+"0"),
		"no signature": verify("", "/myapp.php?foo=1&bar=2", form.Encode()), "no base64": verify("%", "/myapp.php?foo=1&bar=2", form.Encode()),
		"no secret": Twilio{PublicURL: "https://mycompany.com"}.Verify(http.Header{"X-Twilio-Signature": {signature}}, "/myapp.php?foo=1&bar=2", []byte(form.Encode()), time.Time{}),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// A call has the text, escaped, in its language, the number and a key to stop. Source: 47 CFR 64.1200(b).
func TestCall(t *testing.T) {
	provider := Twilio{From: "+12125550100", PublicURL: "https://vigil.example.org"}
	for lang, parts := range map[string][]string{
		English: {`language="en-US"`, "Hill &amp; Sons: Please charge", "Press 9", "1 2 1 2 5 5 5 0 1 0 0"},
		Spanish: {`language="es-US"`, "Hill &amp; Sons: Por favor", "Oprima 9", "1 2 1 2 5 5 5 0 1 0 0"},
	} {
		call := provider.call(Outgoing{Text: phi.Text(BatteryLow.Fill(lang, "Hill & Sons", "")), Language: lang})
		for _, part := range append(parts, `action="https://vigil.example.org/api/v1/messaging/inbound/"`, `numDigits="1"`) {
			if !strings.Contains(call, part) {
				t.Errorf("%s: no %s in %s", lang, part, call)
			}
		}
		if strings.Contains(call, "STOP") {
			t.Errorf("%s: a call cannot be answered with STOP: %s", lang, call)
		}
	}
}

// The JSON forms speak the same: a program that calls has no reply to STOP.
func TestCallAsJSON(t *testing.T) {
	for lang, key := range map[string]string{English: "Press 9", Spanish: "Oprima 9"} {
		for channel, isCall := range map[string]bool{collections.ChannelVoice: true, collections.ChannelSMS: false} {
			body, err := Outgoing{Text: phi.Text(BatteryLow.Fill(lang, "Hill", "")), Language: lang, Channel: channel}.encode("+12125550100")
			if text := string(body); err != nil || strings.Contains(text, "STOP") == isCall || strings.Contains(text, key) != isCall || strings.Contains(text, "1 2 1 2 5 5 5 0 1 0 0") != isCall {
				t.Errorf("%s by %s: %s, %v", lang, channel, text, err)
			}
		}
	}
}
