// Package envelope seals a device event for the practice that owns the device, with age (X25519 and ChaCha20-Poly1305), so that the servers
// that carry it cannot read it. Rules: docs/decisions/events.md, "Sealing".
package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"filippo.io/age"
)

// Envelope is an authenticated event, as its vendor sent it. It refuses to print.
type Envelope struct {
	Vendor     string
	Body       []byte
	ReceivedAt time.Time
	// FromAddress is the sender's network address, for the practice's audit trail.
	FromAddress string
}

// Format keeps events out of logs and error texts.
func (Envelope) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[envelope]") }

// LogValue keeps events out of structured logs.
func (Envelope) LogValue() slog.Value { return slog.StringValue("[envelope]") }

// wire is the sealed form.
type wire struct {
	Vendor     string    `json:"vendor"`
	Body       []byte    `json:"body"`
	ReceivedAt time.Time `json:"received_at"`
	Address    string    `json:"address,omitempty"`
}

// ErrNoIdentity is an envelope that none of the identities opens, such as one for a key that was retired.
var ErrNoIdentity = errors.New("no identity opens the envelope")

// Seal seals an envelope for recipients (age1…). An invalid recipient is an error.
func Seal(e Envelope, recipients ...string) ([]byte, error) {
	parsed := make([]age.Recipient, len(recipients))
	for i, text := range recipients {
		recipient, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, fmt.Errorf("read the recipient: %w", err)
		}
		parsed[i] = recipient
	}
	plain, err := json.Marshal(wire{e.Vendor, e.Body, e.ReceivedAt, e.FromAddress})
	if err != nil {
		return nil, fmt.Errorf("write the envelope: %w", err)
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, parsed...)
	if err != nil {
		return nil, fmt.Errorf("seal the envelope: %w", err)
	}
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("seal the envelope: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("seal the envelope: %w", err)
	}
	return sealed.Bytes(), nil
}

// Open opens an envelope with the identity that it was sealed for. Errors: [ErrNoIdentity]; any other is a damaged envelope.
func Open(sealed []byte, identities ...age.Identity) (Envelope, error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), identities...)
	if _, none := errors.AsType[*age.NoIdentityMatchError](err); none {
		return Envelope{}, ErrNoIdentity
	}
	if err != nil {
		return Envelope{}, errors.New("the envelope is damaged") // age quotes no plaintext, but its header is the sender's
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return Envelope{}, errors.New("the envelope is damaged")
	}
	var w wire
	if err := json.Unmarshal(plain, &w); err != nil {
		return Envelope{}, errors.New("the envelope has another form") // the decoder's error may quote the event
	}
	return Envelope{Vendor: w.Vendor, Body: w.Body, ReceivedAt: w.ReceivedAt, FromAddress: w.Address}, nil
}
