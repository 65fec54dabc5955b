package phi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// redacted is the placeholder that fmt and slog show.
const redacted = "[redacted]"

var errEncode = errors.New("phi: encode protected fields one by one, where the reader's role is known")

// Text is a string that fmt, slog and encoding/json refuse to show; Reveal returns it. fmt does not call Format on
// values in unexported fields, so a struct with a Text in such a field must itself refuse to print.
type Text string

// Reveal returns the plaintext.
func (t Text) Reveal() string { return string(t) }

// Format and LogValue print a placeholder. MarshalJSON always fails.
func (Text) Format(s fmt.State, _ rune)   { conceal(s) }
func (Text) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Text) MarshalJSON() ([]byte, error) { return nil, errEncode }

// Demographics is a patient's identity in plaintext. Only routes may encode it, field by field.
type Demographics struct {
	FirstName, LastName string
	DateOfBirth         string // YYYY-MM-DD
	SSN                 string
	Phone, Email        string
	Address             *Address
}

// Format and LogValue print a placeholder. MarshalJSON always fails.
func (Demographics) Format(s fmt.State, _ rune)   { conceal(s) }
func (Demographics) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Demographics) MarshalJSON() ([]byte, error) { return nil, errEncode }

// Address is a postal address in plaintext; it is sealed as one field.
type Address struct {
	Line1   string `json:"line1"`
	Line2   string `json:"line2,omitempty"`
	City    string `json:"city"`
	State   string `json:"state"`
	Zip     string `json:"zip"`
	Country string `json:"country"`
}

// Format and LogValue print a placeholder. MarshalJSON always fails; use Plaintext for storage.
func (Address) Format(s fmt.State, _ rune)   { conceal(s) }
func (Address) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Address) MarshalJSON() ([]byte, error) { return nil, errEncode }

// plainAddress is an Address without the methods that refuse encoding.
type plainAddress Address

// Plaintext returns the JSON form to seal; "" for nil. ParseAddress parses it.
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

// ParseAddress parses the result of Plaintext; "" gives nil.
func ParseAddress(plaintext string) (*Address, error) {
	if plaintext == "" {
		return nil, nil
	}
	var a plainAddress
	if json.Unmarshal([]byte(plaintext), &a) != nil {
		return nil, errors.New("phi: stored address is not readable") // the cause would quote the value
	}
	return (*Address)(&a), nil
}

// Format and LogValue print only the key's id. MarshalJSON always fails.
func (k Key) Format(s fmt.State, _ rune) { writeString(s, "key "+k.ID) }
func (k Key) LogValue() slog.Value       { return slog.StringValue("key " + k.ID) }
func (Key) MarshalJSON() ([]byte, error) { return nil, errors.New("phi: keys are not encoded") }

// Format and LogValue print a placeholder.
func (IndexKey) Format(s fmt.State, _ rune) { conceal(s) }
func (IndexKey) LogValue() slog.Value       { return slog.StringValue(redacted) }

// Format and LogValue print a placeholder.
func (*KeyRing) Format(s fmt.State, _ rune) { conceal(s) }
func (*KeyRing) LogValue() slog.Value       { return slog.StringValue(redacted) }

// Format and LogValue print a placeholder.
func (*Sealer) Format(s fmt.State, _ rune) { conceal(s) }
func (*Sealer) LogValue() slog.Value       { return slog.StringValue(redacted) }

func conceal(s fmt.State) { writeString(s, redacted) }

// writeString ignores the error, because writes to fmt's buffer do not fail.
func writeString(s fmt.State, text string) { _, _ = io.WriteString(s, text) }
