package messaging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Outgoing is a message that a provider is to send. It refuses to print.
type Outgoing struct {
	ID       string // of the message, random
	To       phi.Text
	Text     phi.Text
	Language string // en or es
	Channel  string // sms or voice
}

// Format and LogValue reveal nothing.
func (Outgoing) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[message]") }
func (Outgoing) LogValue() slog.Value       { return slog.StringValue("[message]") }

// optOutKey is the key that ends all messages during a call.
const optOutKey = "9"

// spoken returns the words of a call: the text with a key in place of a reply, and the number that calls, digit by digit.
// Source: 47 CFR 64.1200(b): who calls, the number, and a way to opt out by key.
func (m Outgoing) spoken(from string) string {
	optOut := "Press " + optOutKey + " to stop all messages. The number is "
	if m.Language == Spanish {
		optOut = "Oprima " + optOutKey + " para no recibir otros mensajes. El teléfono es "
	}
	number := strings.Join(strings.Split(strings.TrimPrefix(from, "+"), ""), " ")
	return strings.TrimSpace(strings.TrimSuffix(m.Text.Reveal(), stops[m.Language])) + " " + optOut + number + "."
}

// Outcome is what an attempt's result proves.
type Outcome int

// The outcomes. Only NotSent is retried.
const (
	Unknown  Outcome = iota // no answer, or one that is not the provider's: the message may have been sent
	Accepted                // by the provider
	NotSent                 // certainly not sent: no connection, or the provider reports it
	Refused                 // permanently, by the provider
)

// Result is the result of an attempt.
type Result struct {
	Outcome    Outcome
	ProviderID string // with Accepted
	Reason     string // with Refused: one of the reasons of this package
}

// Status is a provider's later report about a message.
type Status struct {
	MessageID  string // ours, if the provider returns it
	ProviderID string
	State      string // sent, delivered or failed; "" for a state that changes nothing
	Reason     string // with failed
}

// ErrSignature reports a request that the provider did not sign.
var ErrSignature = errors.New("the signature is not the provider's")

// Provider sends messages and reads the provider's reports.
type Provider interface {
	Send(ctx context.Context, m Outgoing, now time.Time) Result
	// Verify returns [ErrSignature] unless the provider signed the request to a path of this service, with the query, such as
	// /api/v1/messaging/status/?message=1.
	Verify(header http.Header, target string, body []byte, now time.Time) error
	// ReadStatus reads the body of a verified request. message is the query parameter.
	ReadStatus(body []byte, message string) (Status, error)
	// ReadText reads the body of a verified request; an incomplete one is a validation fault.
	ReadText(body []byte) (Incoming, error)
	// Markup returns the body with which the provider expects a text to be answered; nil for JSON.
	Markup(in Incoming, lang string) []byte
}

// ProviderCommand is a patient's request that the provider recognized and answers itself; the service sends
// no answer.
type ProviderCommand string

// What is handled.
const (
	ProviderStop  ProviderCommand = "stop"
	ProviderStart ProviderCommand = "start"
	ProviderHelp  ProviderCommand = "help"
)

// Incoming is a text from a phone, or the key that was pressed in a call.
type Incoming struct {
	ID      string // the provider's, unique
	Channel string
	From    phi.Text // the patient's number
	Text    phi.Text
	Command ProviderCommand // "" for a text that the provider left to us
}

// maxIncoming bounds a text in characters; a concatenated message has up to 1,600.
const maxIncoming = 4000

// storable returns a text without what the database cannot store; the rest is kept as sent.
func storable(text string) phi.Text {
	return phi.Text(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", ""))
}

// maxAnswer bounds how much of an answer is read.
const maxAnswer = 64 << 10

// post sends a request. sent is false if no byte of it can have reached the provider.
func post(client *egress.Client, r *http.Request) (status int, body []byte, sent bool) {
	answer, err := client.Do(r)
	if err != nil {
		var dial *net.OpError
		return 0, nil, !errors.Is(err, egress.ErrAddress) && (!errors.As(err, &dial) || dial.Op != "dial")
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		body = nil // the status counts
	}
	return answer.StatusCode, body, true
}
