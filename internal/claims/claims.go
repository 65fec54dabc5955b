// Package claims builds a claim as a plain value from the practice, the patient, the insurance, the rendering provider and the service, and
// finds the reasons for which a payer would reject it (preflight). It does not decide what may be billed, which is the task of package billing,
// and sends nothing. The rules are written in docs/decisions/claims.md.
package claims

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Practice is the billing provider: loop 2010AA.
type Practice struct {
	Name, NPI, TaxID, Taxonomy, Address, City, State, Zip, Phone string
}

// Submitter identifies the practice and the clearinghouse to each other: the envelope and loops 1000A and 1000B.
type Submitter struct {
	ID, Name, Contact, Phone string // ID is empty if claims are sent by other means
	ReceiverID, ReceiverName string
	Usage                    string // T for test, P for production
	PlaceOfService           string // CMS code, two digits
}

// Provider is the rendering provider: loop 2310B.
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

// Claim is one service line of a patient with all data that a claim carries. It does not print PHI.
type Claim struct {
	EntryID, ClaimID, PatientID string
	Status                      string // state of the entry
	Practice                    Practice
	Submitter                   Submitter
	Payer, SecondaryPayer       collections.Payer // the zero value for self-pay, and for no secondary payer
	Coverage                    phi.Coverage
	Patient                     phi.Demographics
	Gender                      string
	Provider                    Provider
	Referring                   *phi.Practitioner // who referred the patient; nil for none
	Ordering                    *phi.Practitioner // who ordered the monitoring, if the payer requires it; nil if unknown
	Diagnoses                   []string          // ICD-10-CM with dots
	Headings                    []string          // those that need further characters
	UnknownDiagnoses            []string          // those that the list of the date of service lacks
	UncoveredDiagnoses          []string          // those in no list, while that of the date of service is missing

	CPTCode          string
	Modifiers        []string
	Units            int
	ChargeCents      int64
	From, Through    string // YYYY-MM-DD
	Frequency        string
	PayerControl     string // the payer's control number of the claim that is replaced or voided
	PatientPaidCents int64  // toward the line
	Ordered          bool   // monitoring was ordered on or before the first billed day
	// NeedsReopening: a correction of a paid claim, to a payer that does not take replacements.
	NeedsReopening bool
	Unreadable     bool // part of the patient's record cannot be decrypted

	PrimaryDecision *Decision // of the first payer, on a claim to the second; nil on a claim to the first
}

// Decision is the first payer's decision on a line, which a claim to the second payer states: loops 2320 and 2430.
type Decision struct {
	PaidCents    int64
	Adjustments  []collections.Adjustment
	Date         string // YYYY-MM-DD
	PayerControl string // the first payer's number of the claim
	Remarks      []string
}

// balanceCents returns what of a charge the decision does not explain.
func (d Decision) balanceCents(charge int64) int64 {
	for _, a := range d.Adjustments {
		charge -= a.AmountCents
	}
	return charge - d.PaidCents
}

// Format prints the claim id only.
func (c Claim) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "claim "+c.ClaimID) }

// LogValue logs the claim id only.
func (c Claim) LogValue() slog.Value { return slog.StringValue("claim " + c.ClaimID) }

// SelfPay reports that the claim has no payer.
func (c Claim) SelfPay() bool { return c.Payer.ID == "" }

// HasOtherSubscriber reports that the subscriber of the first insurance is not the patient.
func (c Claim) HasOtherSubscriber() bool { return isOther(c.Coverage.Relationship) }

func isOther(relationship string) bool { return relationship != "" && relationship != "self" }

// insurance is a coverage of a claim in its order.
type insurance struct {
	phi.Coverage
	payer         collections.Payer
	sequence      string // SBR01
	insuranceType string // SBR05
}

// insurances returns the insurance that the claim goes to, and the other one if there is one.
func (c Claim) insurances() (destination insurance, other *insurance) {
	first := insurance{c.Coverage, c.Payer, "P", ""}
	s := c.Coverage.Secondary
	if s == nil || s.Payer == 0 {
		return first, nil
	}
	second := insurance{*s, c.SecondaryPayer, collections.SecondarySequence, ""}
	if c.SecondaryPayer.IsMedicare() {
		second.insuranceType = s.MedicareSecondaryType
	}
	if c.PrimaryDecision != nil {
		return second, &first
	}
	return first, &second
}
