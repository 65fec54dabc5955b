// Package claims knows what a payer has to be told: everything that a claim says of a practice, a patient, whose insurance it is, who rendered
// the service and what was done, gathered as one plain value; and what a payer would refuse it for. It refuses to know why something may be
// billed, which is the business of billing, and it sends nothing anywhere.
package claims

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Practice is who bills: loop 2010AA.
type Practice struct {
	Name, NPI, TaxID, Taxonomy, Address, City, State, Zip, Phone string
}

// Submitter is how the clearinghouse knows the practice, and the practice it: the envelope and loops 1000A and 1000B.
type Submitter struct {
	ID, Name, Contact, Phone string // ID is empty while claims leave by other ways
	ReceiverID, ReceiverName string
	Usage                    string // T for test, P for production
	PlaceOfService           string // CMS, two digits
}

// Provider is who rendered a service: loop 2310B.
type Provider struct {
	ID                  string // record id; "" for none
	First, Last         phi.Text
	NPI, Taxonomy, Role string
}

// The frequency codes of a claim. Source: ASC X12N 005010X222A1 (837P), CLM05-3; NUBC type of bill frequency.
const (
	Original    = "1"
	Replacement = "7"
	VoidOfClaim = "8"
)

// Claim is one line for one patient with everything that is said of it. It refuses to print.
type Claim struct {
	EntryID, ClaimID, PatientID string
	Status                      string // the entry's state
	Practice                    Practice
	Submitter                   Submitter
	Payer, SecondPayer          collections.Payer // the zero value for self-pay, and for none
	Coverage                    phi.Coverage
	Patient                     phi.Demographics
	Gender                      string
	Provider                    Provider
	Diagnoses                   []string // ICD-10-CM with their dots
	UnknownDiagnoses            []string // those of them that no code list here holds

	CPTCode       string
	Modifiers     []string
	Units         int
	ChargeCents   int64
	From, Through string // YYYY-MM-DD
	Frequency     string
	PayerControl  string // by which the payer knows the claim that is replaced or voided
	Ordered       bool   // monitoring was ordered on or before the date of service
	Unreadable    bool   // something of the patient cannot be opened
}

// Format shows which entry it is and nothing of the person.
func (c Claim) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "claim "+c.ClaimID) }

// LogValue shows which entry it is and nothing of the person.
func (c Claim) LogValue() slog.Value { return slog.StringValue("claim " + c.ClaimID) }

// SelfPay reports that no payer is asked.
func (c Claim) SelfPay() bool { return c.Payer.ID == "" }

// HasOtherSubscriber reports that the insurance is not the patient's own.
func (c Claim) HasOtherSubscriber() bool {
	return c.Coverage.Relationship != "" && c.Coverage.Relationship != "self"
}
