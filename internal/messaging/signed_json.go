package messaging

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// jsonMessage is the JSON form of a message.
type jsonMessage struct {
	ID       string `json:"id"`
	From     string `json:"from"`
	To       string `json:"to"`
	Text     string `json:"text"`
	Language string `json:"language"`
	Channel  string `json:"channel"`
}

func (m Outgoing) encode(from string) ([]byte, error) {
	text := m.Text.Reveal()
	if m.Channel == collections.ChannelVoice {
		text = m.spoken(from)
	}
	return json.Marshal(jsonMessage{m.ID, from, m.To.Reveal(), text, m.Language, m.Channel})
}

// SignedJSON posts each message as JSON, signed by Standard Webhooks, and accepts reports signed
// the same way. The message's id is the webhook-id.
type SignedJSON struct {
	URL    string
	Secret string // whsec_…
	From   string
	Client *egress.Client
}

// Send implements [Provider].
func (s SignedJSON) Send(ctx context.Context, m Outgoing, now time.Time) Result {
	body, err := m.encode(s.From)
	if err != nil {
		return Result{Outcome: NotSent}
	}
	key, err := s.key()
	if err != nil {
		return Result{Outcome: NotSent}
	}
	signature, err := key.Sign(m.ID, now, body)
	if err != nil {
		return Result{Outcome: NotSent}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return Result{Outcome: NotSent}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(standard.HeaderWebhookID, m.ID)
	r.Header.Set(standard.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	r.Header.Set(standard.HeaderWebhookSignature, signature)
	switch status, _, sent := post(s.Client, r); {
	case !sent, status == http.StatusTooManyRequests:
		return Result{Outcome: NotSent}
	case status >= 200 && status <= 299:
		return Result{Outcome: Accepted, ProviderID: m.ID}
	case status >= 400 && status <= 499 && status != http.StatusRequestTimeout:
		return Result{Outcome: Refused, Reason: ReasonRefused}
	}
	return Result{Outcome: Unknown}
}

// key returns the signing key; the library would accept an empty secret.
func (s SignedJSON) key() (*standard.Webhook, error) {
	if s.Secret == "" {
		return nil, ErrSignature
	}
	return standard.NewWebhook(s.Secret)
}

// signatureTolerance is how old or new a signed request may be. Source: Standard Webhooks, "Verifying webhook authenticity".
const signatureTolerance = 5 * time.Minute

// Verify implements [Provider].
func (s SignedJSON) Verify(header http.Header, _ string, body []byte, now time.Time) error {
	key, err := s.key()
	if err != nil {
		return ErrSignature
	}
	seconds, err := strconv.ParseInt(header.Get(standard.HeaderWebhookTimestamp), 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)); err != nil || age > signatureTolerance || age < -signatureTolerance {
		return ErrSignature
	}
	if key.VerifyIgnoringTimestamp(body, header) != nil {
		return ErrSignature
	}
	return nil
}

// ReadStatus implements [Provider].
func (s SignedJSON) ReadStatus(body []byte, _ string) (Status, error) {
	var answer struct {
		ID    string `json:"id"`
		State string `json:"state"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.ID == "" {
		return Status{}, errors.New("the body is not a state: {id, state}")
	}
	if !slices.Contains([]string{collections.MessageSent, collections.MessageDelivered, collections.MessageFailed}, answer.State) {
		return Status{}, errors.New("the state must be sent, delivered or failed")
	}
	status := Status{MessageID: answer.ID, ProviderID: answer.ID, State: answer.State}
	if status.State == collections.MessageFailed {
		status.Reason = ReasonUndelivered
	}
	return status, nil
}

// ReadText implements [Provider]: a text, or the keys pressed in a call that the service made, with the channel voice.
func (s SignedJSON) ReadText(body []byte) (in Incoming, err error) {
	var sent struct {
		ID      validate.String `json:"id"`
		From    validate.String `json:"from"`
		To      validate.String `json:"to"`
		Text    validate.String `json:"text"`
		Channel validate.String `json:"channel"`
	}
	if json.Unmarshal(body, &sent) != nil {
		return in, fault.New(fault.Invalid, "parse_error", "The body is not a text: {id, from, to, text, channel}.")
	}
	checks := validate.NewChecks()
	in.Channel = cmp.Or(checks.Text("channel", sent.Channel, validate.Optional(0).OneOf(collections.ChannelSMS, collections.ChannelVoice)), collections.ChannelSMS)
	in.ID = checks.Text("id", sent.ID, validate.Required(100).Identifier())
	in.From = phi.Text(checks.Text("from", sent.From, validate.Required(40).Identifier()))
	checks.Text("to", sent.To, validate.Optional(40).Identifier())
	if !sent.Text.Given() {
		checks.Text("text", sent.Text, validate.Required(maxIncoming).Multiline())
	} else if len([]rune(sent.Text.Value)) > maxIncoming {
		checks.Reject("text", fmt.Sprintf("Must have at most %d characters.", maxIncoming))
	}
	in.Text = storable(sent.Text.Value)
	if in.Channel == collections.ChannelVoice && strings.TrimSpace(sent.Text.Value) == optOutKey {
		in.Command = ProviderStop // the call confirms it
	}
	return in, checks.Err()
}

// Markup implements [Provider].
func (s SignedJSON) Markup(Incoming, string) []byte { return nil }

// File appends each message to a file as one line of JSON. It is for tests and for a program that reads the file.
type File struct {
	Path, From string
	mu         sync.Mutex
}

// Send implements [Provider].
func (f *File) Send(_ context.Context, m Outgoing, _ time.Time) Result {
	body, err := m.encode(f.From)
	if err != nil {
		return Result{Outcome: NotSent}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	file, err := os.OpenFile(f.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return Result{Outcome: NotSent}
	}
	_, err = file.Write(append(body, '\n'))
	if err = errors.Join(err, file.Close()); err != nil {
		return Result{Outcome: Unknown}
	}
	return Result{Outcome: Accepted, ProviderID: m.ID}
}

// Verify implements [Provider]: a file signs nothing.
func (f *File) Verify(http.Header, string, []byte, time.Time) error { return ErrSignature }

// ReadStatus implements [Provider].
func (f *File) ReadStatus([]byte, string) (Status, error) { return Status{}, ErrSignature }

// ReadText implements [Provider].
func (f *File) ReadText([]byte) (Incoming, error) { return Incoming{}, ErrSignature }

// Markup implements [Provider].
func (f *File) Markup(Incoming, string) []byte { return nil }
