package x12

import (
	"fmt"
	"strings"
	"time"
)

// A Batch is the claims of one file. It refuses to print, as all that names a patient does.
type Batch struct {
	unprintable
	Submitter Submitter
	Receiver  Party
	Usage     string // T for a test, P for production
	// The numbers of the envelopes, never used before with this receiver. Set is the transaction set's, from 1.
	Interchange, Group, Set int
	Reference               string    // BHT03, by which a 277CA names the batch; the interchange's number where it is empty
	At                      time.Time // when it is made, in the zone in which the file shall say so
	// FiveDigitZIP lets the ZIP code of a billing provider or a facility have five digits, for receivers that do not ask for nine.
	FiveDigitZIP bool
	Claims       []Claim
}

// A Party is somebody by name and number.
type Party struct{ ID, Name string }

// A Submitter is who sends the file, and whom to ask about it.
type Submitter struct {
	Party
	Contact, Phone string
}

// An Address is in the United States unless it names another Country, by the two letters of ISO 3166-1; where it does, State and ZIP are as they are
// there, if they are at all. It refuses to print.
type Address struct {
	unprintable
	Line1, Line2, City, State, ZIP, Country string
}

// A Person is named by parts. It refuses to print.
type Person struct {
	unprintable
	Last, First, Middle, Suffix string
	BirthDate                   string // YYYY-MM-DD
	Gender                      string // F, M or U
	Address                     Address
}

// A Provider bills, renders or houses a service: a person when it has a First name, otherwise an organization.
type Provider struct {
	Name, First, Middle, Suffix string // Name is an organization's, or a person's last name
	NPI                         string
	Taxonomy                    string
	TaxID                       string // the billing provider's employer identification number
	Contact, Phone              string // the billing provider's, if they are not the submitter's
	Address                     Address
}

// A Payer is who shall pay.
type Payer struct {
	Party
	FilingCode string // SBR09, such as MB for Medicare Part B or CI for commercial
	Address    Address
}

// Coverage is what a subscriber has with a payer.
type Coverage struct {
	unprintable
	Payer    Payer
	MemberID string
	Group    string // group or policy number
	// Sequence is P for the primary payer, S for the second, T for the third; P where it is empty.
	Sequence string
	// InsuranceType says why Medicare does not pay first, such as 12 for working aged: SBR05.
	InsuranceType string
	Subscriber    Person
}

// A Claim is one patient's, for one period, of one provider: whether it is, its maker knows. It refuses to print.
type Claim struct {
	unprintable
	ControlNumber string // CLM01: 20 characters at most, A to Z and 0 to 9, never used again
	Billing       Provider
	Coverage      Coverage
	// Patient is who was cared for, when that is not the subscriber, and Relationship what they are to them: 01 spouse, 19 child, G8 other.
	Patient      *Person
	Relationship string

	PlaceOfService     string
	Frequency          string // 1 original, 7 replacement, 8 void
	PayerControlNumber string // REF F8: the payer's number of the claim that is replaced or voided
	// Whether the provider takes assignment (A, B or C), the patient assigned benefits (Y, N or W) and released information (Y or I). Where they
	// are empty: A, Y and Y.
	Assignment, Benefits, Release string

	Diagnoses   []string  // ICD-10-CM, the first one principal
	Rendering   *Provider // when that is not the billing provider
	Facility    *Provider // where the service was given, when that is not the billing provider's address
	OtherPayers []OtherPayer
	Lines       []ServiceLine
}

// Charge is the claim's: that of its lines together.
func (c Claim) Charge() (sum Cents) {
	for _, line := range c.Lines {
		sum += line.Charge
	}
	return sum
}

// OtherPayer is a further coverage of the patient, and what it paid before this claim, if it did.
type OtherPayer struct {
	Coverage
	Relationship  string // the patient's to its subscriber: 18 self, 01 spouse, 19 child, G8 other
	ControlNumber string // its number of the claim, when it has decided
	DecidedOn     string // YYYY-MM-DD, "" while it has not
	Paid          Cents
	Adjustments   []Adjustment // on the claim as a whole
}

// A ServiceLine is one procedure of a claim.
type ServiceLine struct {
	ControlNumber  string // REF 6R: 30 characters at most, by which an 835 names the line
	Procedure      string // CPT or HCPCS
	Modifiers      []string
	Charge         Cents
	Units          int
	From, Through  string // YYYY-MM-DD
	Pointers       []int  // to the claim's diagnoses, from 1
	PlaceOfService string // where it is not the claim's
	Decisions      []LineDecision
}

// A LineDecision is what another payer decided about a line.
type LineDecision struct {
	PayerID     string
	Paid        Cents
	Units       int
	DecidedOn   string // YYYY-MM-DD
	Adjustments []Adjustment
}

// An Adjustment is why less, or more, was paid than was charged.
type Adjustment struct {
	Group    string // CO contractual, PR the patient's, OA other, PI the payer's own, CR a correction
	Code     string // claim adjustment reason code
	Amount   Cents  // below zero where it adds to what is paid
	Quantity string // of units, "" for none
}

// A FieldError is a value that the guide does not allow.
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

// FieldErrors are all that is wrong with a batch.
type FieldErrors []FieldError

func (e FieldErrors) Error() string {
	sentences := make([]string, len(e))
	for i, one := range e {
		sentences[i] = one.Error()
	}
	return strings.Join(sentences, "; ")
}
