package x12

import (
	"fmt"
	"strings"
	"time"
)

// A Batch is the claims of one file. It does not print, like every type here that carries PHI.
type Batch struct {
	unprintable
	Submitter Submitter
	Receiver  Party
	Usage     string // T for a test, P for production
	// Control numbers of the envelopes, never reused with this receiver. Set is the transaction set's, from 1.
	Interchange, Group, Set int
	Reference               string    // BHT03, which a 277CA quotes; empty: the interchange control number
	At                      time.Time // time of creation, in the time zone that the file shows
	// FiveDigitZIP permits five-digit ZIP codes of billing providers and facilities, for receivers that do not require nine.
	FiveDigitZIP bool
	Claims       []Claim
}

// A Party is an organization with its identifier.
type Party struct{ ID, Name string }

// A Submitter sends the file; Contact and Phone are for questions about it.
type Submitter struct {
	Party
	Contact, Phone string
}

// An Address is in the United States unless Country, a two-letter ISO 3166-1 code, names another country; then State and ZIP follow that country's
// format and may be empty. It does not print.
type Address struct {
	unprintable
	Line1, Line2, City, State, ZIP, Country string
}

// A Person has a name in parts. It does not print.
type Person struct {
	unprintable
	Last, First, Middle, Suffix string
	BirthDate                   string // YYYY-MM-DD
	Gender                      string // F, M or U
	Address                     Address
}

// A Provider bills, renders or hosts a service. With a First name it is a person, otherwise an organization.
type Provider struct {
	Name, First, Middle, Suffix string // an organization's name, or a person's last name
	NPI                         string
	Taxonomy                    string
	TaxID                       string // the billing provider's employer identification number
	Contact, Phone              string // the billing provider's, if different from the submitter's
	Address                     Address
}

// A Payer is the insurer that receives the claim.
type Payer struct {
	Party
	FilingCode string // SBR09, such as MB for Medicare Part B or CI for commercial
	Address    Address
}

// Coverage is a subscriber's insurance with one payer.
type Coverage struct {
	unprintable
	Payer    Payer
	MemberID string
	Group    string // group or policy number
	// Sequence is P for the primary payer, S for the secondary, T for the tertiary; empty means P.
	Sequence string
	// InsuranceType is the reason for which Medicare is secondary, such as 12 for working aged: SBR05.
	InsuranceType string
	Subscriber    Person
}

// A Claim is for one patient, period and provider, which the caller must ensure. It does not print.
type Claim struct {
	unprintable
	ControlNumber string // CLM01: 20 characters at most, A to Z and 0 to 9, never used again
	Billing       Provider
	Coverage      Coverage
	// Patient is set if the patient is not the subscriber; Relationship is then the patient's to the subscriber: 01 spouse, 19 child, G8 other.
	Patient      *Person
	Relationship string

	PlaceOfService     string
	Frequency          string // 1 original, 7 replacement, 8 void
	PayerControlNumber string // REF F8: the payer's number of the claim that is replaced or voided
	PatientPaid        Cents  // toward this claim
	// Whether the provider accepts assignment (A, B or C), and the patient assigned benefits (Y, N or W) and permitted the release of information
	// (Y or I). Empty values mean A, Y and Y.
	Assignment, Benefits, Release string

	Diagnoses   []string  // ICD-10-CM, the principal diagnosis first
	Rendering   *Provider // nil if it is the billing provider
	Referring   *Provider // nil without a referral
	Facility    *Provider // place of service, nil if it is the billing provider's address
	OtherPayers []OtherPayer
	Lines       []ServiceLine
}

// Charge returns the sum of the lines' charges.
func (c Claim) Charge() (sum Cents) {
	for _, line := range c.Lines {
		sum += line.Charge
	}
	return sum
}

// OtherPayer is a further coverage of the patient, with its decision and payment if it decided before this claim.
type OtherPayer struct {
	Coverage
	Relationship  string // relation to that coverage's subscriber: 18 self, 01 spouse, 19 child, G8 other
	ControlNumber string // its control number of the claim, if it has decided
	DecidedOn     string // YYYY-MM-DD, "" if it has not decided
	Paid          Cents
	Adjustments   []Adjustment // on the claim as a whole
	RemarkCodes   []string     // of its decision; the first five are sent
}

// A ServiceLine is one procedure of a claim.
type ServiceLine struct {
	ControlNumber  string // REF 6R, at most 30 characters; an 835 quotes it
	Procedure      string // CPT or HCPCS
	Modifiers      []string
	Charge         Cents
	Units          int
	From, Through  string    // YYYY-MM-DD
	Pointers       []int     // to the claim's diagnoses, from 1
	PlaceOfService string    // if different from the claim's
	Ordering       *Provider // nil if it is the rendering provider, or not sent
	Decisions      []LineDecision
}

// A LineDecision is another payer's decision on a line.
type LineDecision struct {
	PayerID     string
	Paid        Cents
	Units       int
	DecidedOn   string // YYYY-MM-DD
	Adjustments []Adjustment
	Remaining   Cents // what the patient is left to owe
}

// An Adjustment explains a difference between the charge and the payment.
type Adjustment struct {
	Group    string // CO contractual, PR patient responsibility, OA other, PI payer initiated, CR correction
	Code     string // claim adjustment reason code
	Amount   Cents  // negative if it increases the payment
	Quantity string // of units, "" for none
}

// A FieldError reports a value that the guide does not allow.
type FieldError struct {
	Claim  string // the claim's control number, "" for the batch's own fields
	Field  string // such as billing.npi or lines[0].units
	Reason string
}

func (e FieldError) Error() string {
	if e.Claim == "" {
		return fmt.Sprintf("x12: %s %s", e.Field, e.Reason)
	}
	return fmt.Sprintf("x12: claim %s: %s %s", e.Claim, e.Field, e.Reason)
}

// FieldErrors are all errors of a batch.
type FieldErrors []FieldError

func (e FieldErrors) Error() string {
	sentences := make([]string, len(e))
	for i, one := range e {
		sentences[i] = one.Error()
	}
	return strings.Join(sentences, "; ")
}
