package config

import (
	"errors"
	"strings"

	"github.com/vigilhealth/vigil/internal/validate"
)

// Claims identifies the practice to its clearinghouse. Without a submitter id, claims are checked but no file is created.
type Claims struct {
	SubmitterID      string `env:"CLAIMS_SUBMITTER_ID" is:"x12" doc:"the sender's id at the clearinghouse (ISA06, GS02); empty = no claim files"`
	SubmitterName    string `env:"CLAIMS_SUBMITTER_NAME" is:"x12" doc:"name of the sender; empty is the practice's"`
	SubmitterContact string `env:"CLAIMS_SUBMITTER_CONTACT" is:"x12" doc:"contact person for the clearinghouse"`
	SubmitterPhone   string `env:"CLAIMS_SUBMITTER_PHONE" is:"tenDigits" doc:"ten digits; empty is the practice's"`
	ReceiverID       string `env:"CLAIMS_RECEIVER_ID" is:"x12" doc:"the clearinghouse's id (ISA08, GS03)"`
	ReceiverName     string `env:"CLAIMS_RECEIVER_NAME" is:"x12" doc:"the clearinghouse's name"`
	Usage            string `env:"CLAIMS_USAGE" envDefault:"T" oneof:"T,P" doc:"T for test files, P for production (ISA15)"`
	PlaceOfService   string `env:"CLAIMS_PLACE_OF_SERVICE" envDefault:"11" is:"twoDigits" doc:"CMS place of service of claims"`
}

// Practice is the billing provider: loop 2010AA of a claim.
type Practice struct {
	Name     string `env:"PRACTICE_NAME" is:"x12" doc:"legal name of the practice, as registered with payers"`
	NPI      string `env:"PRACTICE_NPI" is:"npi" doc:"National Provider Identifier of the practice"`
	TaxID    string `env:"PRACTICE_TAX_ID" is:"ein" doc:"employer identification number, nine digits"`
	Taxonomy string `env:"PRACTICE_TAXONOMY" is:"taxonomy" doc:"NUCC provider taxonomy code, such as 207Q00000X"`
	Address  string `env:"PRACTICE_ADDRESS" is:"x12" doc:"street address; payers reject a post office box"`
	City     string `env:"PRACTICE_CITY" is:"x12" doc:"city"`
	State    string `env:"PRACTICE_STATE" is:"state" doc:"two letters"`
	Zip      string `env:"PRACTICE_ZIP" is:"zip" doc:"claims require all nine digits"`
	Phone    string `env:"PRACTICE_PHONE" is:"tenDigits" doc:"ten digits"`
}

// digits returns a rule that removes separators from a number of n digits.
func digits(n int, message string) func(string) (string, error) {
	return func(text string) (string, error) {
		plain := validate.Digits(text)
		if len(plain) != n || strings.Trim(text, "0123456789-() .") != "" {
			return "", errors.New(message)
		}
		return plain, nil
	}
}

func npi(text string) (string, error) {
	if !validate.ValidNPI(text) {
		return "", errors.New("must be ten digits with a valid check digit")
	}
	return text, nil
}

// Letterhead returns the practice's address and phone number in one line, or "" if none is set.
func (p Practice) Letterhead() string {
	place := strings.TrimSpace(strings.Join(strings.Fields(p.City+" "+p.State+" "+postcode(p.Zip)), " "))
	phone := p.Phone
	if len(phone) == 10 {
		phone = "(" + phone[:3] + ") " + phone[3:6] + "-" + phone[6:]
	}
	var parts []string
	for _, part := range []string{p.Address, place} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	line := strings.Join(parts, ", ")
	if line != "" && phone != "" {
		line += " · "
	}
	return line + phone
}

// postcode returns the five-digit ZIP code; claims use all nine digits.
func postcode(zip string) string {
	if len(zip) >= 5 {
		return zip[:5]
	}
	return zip
}
