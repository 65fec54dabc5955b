package phi

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
)

// Practitioner is a practitioner of another practice, named for one patient. It does not print.
type Practitioner struct {
	NPI       string `json:"npi"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
}

// Format and LogValue print a placeholder. MarshalJSON always fails; use Plaintext for storage.
func (Practitioner) Format(s fmt.State, _ rune)   { conceal(s) }
func (Practitioner) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Practitioner) MarshalJSON() ([]byte, error) { return nil, errEncode }

// plainPractitioner is the type without the methods that refuse encoding.
type plainPractitioner Practitioner

// Plaintext returns the JSON form to seal; "" for nil. ParsePractitioner parses it.
func (p *Practitioner) Plaintext() string {
	if p == nil {
		return ""
	}
	text, _ := json.Marshal((*plainPractitioner)(p)) // texts always encode
	return string(text)
}

// ParsePractitioner parses the result of Plaintext; "" gives nil.
func ParsePractitioner(plaintext string) (*Practitioner, error) {
	if plaintext == "" {
		return nil, nil
	}
	var p plainPractitioner
	if json.Unmarshal([]byte(plaintext), &p) != nil {
		return nil, errors.New("phi: stored practitioner is not readable") // the cause would quote the value
	}
	return (*Practitioner)(&p), nil
}
