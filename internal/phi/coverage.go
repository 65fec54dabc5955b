package phi

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
)

// Coverage is how a patient is insured, in the clear; what of it has no column of its own is sealed as one field.
type Coverage struct {
	Payer        int64       `json:"payer_id,omitempty"` // the payer's number; 0 for none
	MemberID     string      `json:"member_id,omitempty"`
	GroupNumber  string      `json:"group_number,omitempty"`
	Relationship string      `json:"relationship,omitempty"` // of the patient to the subscriber: self, spouse, child, other
	Subscriber   *Subscriber `json:"subscriber,omitempty"`
	Secondary    *Coverage   `json:"secondary,omitempty"`
	SelfPay      bool        `json:"self_pay,omitempty"` // somebody said that there is no payer
}

// Subscriber is who holds an insurance that covers somebody else.
type Subscriber struct {
	FirstName   string `json:"first_name,omitempty"`
	LastName    string `json:"last_name,omitempty"`
	DateOfBirth string `json:"date_of_birth,omitempty"` // YYYY-MM-DD
	Gender      string `json:"gender,omitempty"`        // male, female, other, unknown
}

// Format shows nothing of the coverage.
func (Coverage) Format(s fmt.State, _ rune) { conceal(s) }

// LogValue shows nothing of the coverage.
func (Coverage) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses; Plaintext is the way to storage.
func (Coverage) MarshalJSON() ([]byte, error) { return nil, errEncode }

// Format shows nothing of the person.
func (Subscriber) Format(s fmt.State, _ rune) { conceal(s) }

// LogValue shows nothing of the person.
func (Subscriber) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses; Plaintext of the coverage is the way to storage.
func (Subscriber) MarshalJSON() ([]byte, error) { return nil, errEncode }

// plainCoverage and plainSubscriber are without the refusals.
type (
	plainCoverage struct {
		Payer        int64            `json:"payer_id,omitempty"`
		MemberID     string           `json:"member_id,omitempty"`
		GroupNumber  string           `json:"group_number,omitempty"`
		Relationship string           `json:"relationship,omitempty"`
		Subscriber   *plainSubscriber `json:"subscriber,omitempty"`
		Secondary    *plainCoverage   `json:"secondary,omitempty"`
		SelfPay      bool             `json:"self_pay,omitempty"`
	}
	plainSubscriber Subscriber
)

func (c *Coverage) plain() *plainCoverage {
	if c == nil {
		return nil
	}
	return &plainCoverage{c.Payer, c.MemberID, c.GroupNumber, c.Relationship, (*plainSubscriber)(c.Subscriber), c.Secondary.plain(), c.SelfPay}
}

func (c *plainCoverage) covered() *Coverage {
	if c == nil {
		return nil
	}
	return &Coverage{c.Payer, c.MemberID, c.GroupNumber, c.Relationship, (*Subscriber)(c.Subscriber), c.Secondary.covered(), c.SelfPay}
}

// Plaintext is the form in which a coverage is sealed; "" for none and for one that says nothing. ParseCoverage reads it.
func (c *Coverage) Plaintext() (string, error) {
	if c == nil || *c == (Coverage{}) {
		return "", nil
	}
	text, err := json.Marshal(c.plain())
	if err != nil {
		return "", errors.New("phi: encoding a coverage")
	}
	return string(text), nil
}

// ParseCoverage reads what Plaintext wrote; nil for "".
func ParseCoverage(plaintext string) (*Coverage, error) {
	if plaintext == "" {
		return nil, nil
	}
	var c plainCoverage
	if json.Unmarshal([]byte(plaintext), &c) != nil {
		return nil, errors.New("phi: stored coverage is not readable") // the cause would quote it
	}
	return c.covered(), nil
}
