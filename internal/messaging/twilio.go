package messaging

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the provider's signature scheme
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/egress"
)

// Paths of this service that a provider calls.
const (
	StatusPath  = "/api/v1/messaging/status/"
	InboundPath = "/api/v1/messaging/inbound/"
)

// twilioUnsubscribed is Twilio's error for a number that sent STOP. Source: Twilio, error 21610.
const twilioUnsubscribed = 21610

// Twilio sends by Twilio's HTTP API, version 2010-04-01, or by a provider with a compatible one.
type Twilio struct {
	Base      string // before /2010-04-01
	Account   string
	Secret    string // the auth token
	From      string // a number, or a messaging service (MG…)
	PublicURL string // of this service, by which its callbacks are signed
	Client    *egress.Client
}

// Send implements [Provider]. Twilio has no idempotency key, so an unknown outcome is never repeated.
func (t Twilio) Send(ctx context.Context, m Outgoing, _ time.Time) Result {
	form := url.Values{"To": {m.To.Reveal()}, "StatusCallback": {t.PublicURL + StatusPath + "?message=" + m.ID}}
	from, resource := "From", "Messages.json"
	if strings.HasPrefix(t.From, "MG") {
		from = "MessagingServiceSid"
	}
	form.Set(from, t.From)
	if m.Channel == collections.ChannelVoice {
		resource = "Calls.json"
		form.Set("Twiml", t.call(m))
	} else {
		form.Set("Body", m.Text.Reveal())
	}
	address := t.Base + "/2010-04-01/Accounts/" + url.PathEscape(t.Account) + "/" + resource
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return Result{Outcome: NotSent}
	}
	r.SetBasicAuth(t.Account, t.Secret)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	status, body, sent := post(t.Client, r)
	if !sent {
		return Result{Outcome: NotSent}
	}
	return twilioResult(status, body)
}

// twilioResult reads an answer. Only an answer in Twilio's format counts as Twilio's; an error of a
// gateway leaves the outcome unknown.
func twilioResult(status int, body []byte) Result {
	var answer struct {
		SID  string `json:"sid"`
		Code int    `json:"code"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return Result{Outcome: Unknown}
	}
	switch {
	case status >= 200 && status <= 299 && answer.SID != "":
		return Result{Outcome: Accepted, ProviderID: answer.SID}
	case answer.Code == twilioUnsubscribed:
		return Result{Outcome: Refused, Reason: ReasonStopped}
	case answer.Code == 0 || status < 400:
		return Result{Outcome: Unknown}
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return Result{Outcome: NotSent}
	case status < 500:
		return Result{Outcome: Refused, Reason: ReasonRefused}
	}
	return Result{Outcome: Unknown}
}

// call returns the call in Twilio's markup.
func (t Twilio) call(m Outgoing) string {
	call := response{}
	call.Gather.NumDigits, call.Gather.Timeout, call.Gather.Action = 1, 8, t.PublicURL+InboundPath
	call.Gather.Say.Language = voices[m.Language]
	call.Gather.Say.Text = m.spoken(t.From)
	encoded, err := xml.Marshal(call)
	if err != nil {
		return "" // unreachable: texts and numbers always encode
	}
	return string(encoded)
}

// response is a call in Twilio's markup.
type response struct {
	XMLName xml.Name `xml:"Response"`
	Gather  struct {
		NumDigits int    `xml:"numDigits,attr"`
		Timeout   int    `xml:"timeout,attr"`
		Action    string `xml:"action,attr"`
		Say       speech
	}
}

// speech is a sentence in Twilio's markup.
type speech struct {
	Language string `xml:"language,attr"`
	Text     string `xml:",chardata"`
}

// voices are Twilio's names of the languages.
var voices = map[string]string{English: "en-US", Spanish: "es-US"}

// Verify implements [Provider]. Source: Twilio, "Validating requests": HMAC-SHA1 of the URL and the sorted parameters.
func (t Twilio) Verify(header http.Header, target string, body []byte, _ time.Time) error {
	got, err := base64.StdEncoding.DecodeString(header.Get("X-Twilio-Signature"))
	form, bad := url.ParseQuery(string(body))
	if err != nil || bad != nil || len(got) == 0 || t.Secret == "" {
		return ErrSignature
	}
	for _, base := range portForms(t.PublicURL) {
		if hmac.Equal(got, TwilioSignature(t.Secret, base+target, form)) {
			return nil
		}
	}
	return ErrSignature
}

// portForms returns an address without a port and with one: Twilio signs either, which its own library allows for too.
func portForms(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return []string{address}
	}
	without, with := *u, *u
	without.Host = u.Hostname()
	if strings.Contains(without.Host, ":") { // IPv6
		without.Host = "[" + without.Host + "]"
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	with.Host = without.Host + ":" + port
	return []string{without.String(), with.String()}
}

// TwilioSignature returns Twilio's signature of a request to a URL with form parameters. A repeated parameter counts once for each distinct value.
func TwilioSignature(secret, address string, form url.Values) []byte {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(address))
	for _, name := range slices.Sorted(maps.Keys(form)) {
		for _, value := range slices.Compact(slices.Sorted(slices.Values(form[name]))) {
			mac.Write([]byte(name + value))
		}
	}
	return mac.Sum(nil)
}

// twilioStates are the states of this service for Twilio's of a message and a call; others change nothing.
var twilioStates = map[string]string{
	"sent": collections.MessageSent, "delivered": collections.MessageDelivered, "read": collections.MessageDelivered,
	"undelivered": collections.MessageFailed, "failed": collections.MessageFailed, "canceled": collections.MessageFailed,
	"completed": collections.MessageDelivered, "busy": collections.MessageFailed, "no-answer": collections.MessageFailed,
}

// ReadStatus implements [Provider].
func (t Twilio) ReadStatus(body []byte, message string) (Status, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return Status{}, errors.New("the body is not a form")
	}
	s := Status{MessageID: message, ProviderID: firstOf(form, "MessageSid", "SmsSid", "CallSid")}
	s.State = twilioStates[strings.ToLower(firstOf(form, "MessageStatus", "SmsStatus", "CallStatus"))]
	if s.State == collections.MessageFailed {
		s.Reason = ReasonUndelivered
		if form.Get("ErrorCode") == "21610" {
			s.Reason = ReasonStopped
		}
	}
	return s, nil
}

func firstOf(form url.Values, names ...string) string {
	for _, name := range names {
		if value := form.Get(name); value != "" {
			return value
		}
	}
	return ""
}
