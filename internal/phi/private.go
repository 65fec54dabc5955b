package phi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// redacted is all that fmt and slog ever show.
const redacted = "[redacted]"

var errEncode = errors.New("phi: encode protected fields one by one, where the reader's role is known")

// Text is a string that fmt, slog and encoding/json refuse to show; Reveal takes it out. One hole remains: fmt
// does not ask the values in unexported fields, so a struct that keeps a Text in one must itself refuse to print.
type Text string

// Reveal returns the text in the clear.
func (t Text) Reveal() string { return string(t) }

// Format shows nothing of the text.
func (Text) Format(s fmt.State, _ rune) { conceal(s) }

// LogValue shows nothing of the text.
func (Text) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses.
func (Text) MarshalJSON() ([]byte, error) { return nil, errEncode }

// Demographics is a patient's identity in the clear. Only routes may encode it, field by field.
type Demographics struct {
	FirstName, LastName string
	DateOfBirth         string // YYYY-MM-DD
	SSN                 string
	Phone, Email        string
	Address             *Address
}

// Format shows nothing of the person.
func (Demographics) Format(s fmt.State, _ rune) { conceal(s) }

// LogValue shows nothing of the person.
func (Demographics) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses.
func (Demographics) MarshalJSON() ([]byte, error) { return nil, errEncode }

// Address is a postal address in the clear; it is sealed as one field.
type Address struct {
	Line1   string `json:"line1"`
	Line2   string `json:"line2,omitempty"`
	City    string `json:"city"`
	State   string `json:"state"`
	Zip     string `json:"zip"`
	Country string `json:"country"`
}

// Format shows nothing of the address.
func (Address) Format(s fmt.State, _ rune) { conceal(s) }

// LogValue shows nothing of the address.
func (Address) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses; Plaintext is the way to storage.
func (Address) MarshalJSON() ([]byte, error) { return nil, errEncode }

// plainAddress is an Address without its refusals.
type plainAddress Address

// Plaintext is the form in which an address is sealed; "" for none. ParseAddress reads it.
func (a *Address) Plaintext() (string, error) {
	if a == nil {
		return "", nil
	}
	text, err := json.Marshal((*plainAddress)(a))
	if err != nil {
		return "", errors.New("phi: encoding an address")
	}
	return string(text), nil
}

// ParseAddress reads what Plaintext wrote; nil for "".
func ParseAddress(plaintext string) (*Address, error) {
	if plaintext == "" {
		return nil, nil
	}
	var a plainAddress
	if json.Unmarshal([]byte(plaintext), &a) != nil {
		return nil, errors.New("phi: stored address is not readable") // the cause would quote it
	}
	return (*Address)(&a), nil
}

// Format shows the key's id only.
func (k Key) Format(s fmt.State, _ rune) { writeString(s, "key "+k.ID) }

// LogValue shows the key's id only.
func (k Key) LogValue() slog.Value { return slog.StringValue("key " + k.ID) }

// MarshalJSON refuses.
func (Key) MarshalJSON() ([]byte, error) { return nil, errors.New("phi: keys are not encoded") }

// Format shows nothing of the key.
func (IndexKey) Format(s fmt.State, _ rune) { conceal(s) }

// Format shows nothing of the keys.
func (*KeyRing) Format(s fmt.State, _ rune) { conceal(s) }

// Format shows nothing of the keys.
func (*Sealer) Format(s fmt.State, _ rune) { conceal(s) }

func conceal(s fmt.State) { writeString(s, redacted) }

// writeString drops the error: fmt's own buffer takes everything.
func writeString(s fmt.State, text string) { _, _ = io.WriteString(s, text) }
