package phi

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
)

// Coverage is a patient's insurance coverage in plaintext. The fields without their own column are sealed as one value.
type Coverage struct {
	Payer        int64       `json:"payer_id,omitempty"` // the payer's number; 0 for none
	MemberID     string      `json:"member_id,omitempty"`
	GroupNumber  string      `json:"group_number,omitempty"`
	Relationship string      `json:"relationship,omitempty"` // of the patient to the subscriber: self, spouse, child, other
	Subscriber   *Subscriber `json:"subscriber,omitempty"`
	Secondary    *Coverage   `json:"secondary,omitempty"`
	SelfPay      bool        `json:"self_pay,omitempty"` // staff recorded that there is no payer
	// MedicareSecondaryType is why Medicare is not the first payer: SBR05.
	MedicareSecondaryType string `json:"medicare_secondary_type,omitempty"`
}

// Subscriber is the holder of an insurance that covers the patient.
type Subscriber struct {
	FirstName   string `json:"first_name,omitempty"`
	LastName    string `json:"last_name,omitempty"`
	DateOfBirth string `json:"date_of_birth,omitempty"` // YYYY-MM-DD
	Gender      string `json:"gender,omitempty"`        // male, female, other, unknown
}

// Format and LogValue print a placeholder. MarshalJSON always fails; use Plaintext for storage.
func (Coverage) Format(s fmt.State, _ rune)   { conceal(s) }
func (Coverage) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Coverage) MarshalJSON() ([]byte, error) { return nil, errEncode }

// Format and LogValue print a placeholder. MarshalJSON always fails; use Plaintext of the coverage for storage.
func (Subscriber) Format(s fmt.State, _ rune)   { conceal(s) }
func (Subscriber) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Subscriber) MarshalJSON() ([]byte, error) { return nil, errEncode }

// plainCoverage and plainSubscriber are the types without the methods that refuse encoding.
type (
	plainCoverage struct {
		Payer        int64            `json:"payer_id,omitempty"`
		MemberID     string           `json:"member_id,omitempty"`
		GroupNumber  string           `json:"group_number,omitempty"`
		Relationship string           `json:"relationship,omitempty"`
		Subscriber   *plainSubscriber `json:"subscriber,omitempty"`
		Secondary    *plainCoverage   `json:"secondary,omitempty"`
		SelfPay      bool             `json:"self_pay,omitempty"`

		MedicareSecondaryType string `json:"medicare_secondary_type,omitempty"`
	}
	plainSubscriber Subscriber
)

func (c *Coverage) plain() *plainCoverage {
	if c == nil {
		return nil
	}
	return &plainCoverage{c.Payer, c.MemberID, c.GroupNumber, c.Relationship, (*plainSubscriber)(c.Subscriber), c.Secondary.plain(), c.SelfPay, c.MedicareSecondaryType}
}

func (c *plainCoverage) coverage() *Coverage {
	if c == nil {
		return nil
	}
	return &Coverage{c.Payer, c.MemberID, c.GroupNumber, c.Relationship, (*Subscriber)(c.Subscriber), c.Secondary.coverage(), c.SelfPay, c.MedicareSecondaryType}
}

// Plaintext returns the JSON form to seal; "" for nil and for an empty coverage. ParseCoverage parses it.
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

// ParseCoverage parses the result of Plaintext; "" gives nil.
func ParseCoverage(plaintext string) (*Coverage, error) {
	if plaintext == "" {
		return nil, nil
	}
	var c plainCoverage
	if json.Unmarshal([]byte(plaintext), &c) != nil {
		return nil, errors.New("phi: stored coverage is not readable") // the cause would quote the value
	}
	return c.coverage(), nil
}
