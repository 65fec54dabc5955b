package claims

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/x12"
)

// FormLine is a claim as a service line with its own control number. It does not print PHI.
type FormLine struct {
	Claim
	Control string
}

// Envelope returns a batch without claims: submitter, receiver and control numbers. Source: ASC X12N 005010X222A1 (837P), 1000A and 1000B.
func (d Loader) Envelope(number int, reference string, at time.Time) x12.Batch {
	s := d.Submitter
	return x12.Batch{
		Submitter: x12.Submitter{
			Party: x12.Party{ID: s.ID, Name: cmp.Or(s.Name, d.Practice.Name)}, Contact: s.Contact, Phone: cmp.Or(s.Phone, d.Practice.Phone),
		},
		Receiver: x12.Party{ID: s.ReceiverID, Name: s.ReceiverName}, Usage: s.Usage,
		Interchange: number, Group: number, Set: 1, Reference: reference, At: at,
	}
}

// Build837P combines one or more lines into one 837P claim. Data that all lines share is taken from the first.
func Build837P(control, frequency, payerControl string, lines []FormLine) x12.Claim {
	first := lines[0].Claim
	form := x12.Claim{
		ControlNumber: control, Billing: billingProvider(first.Practice), PlaceOfService: first.Submitter.PlaceOfService, Frequency: frequency,
		Coverage: coverage(first.Payer, first.Coverage, first), Diagnoses: diagnoses(lines),
		Rendering: &x12.Provider{
			Name: first.Provider.Last.Reveal(), First: first.Provider.First.Reveal(), NPI: first.Provider.NPI, Taxonomy: first.Provider.Taxonomy,
		},
	}
	form.Referring = namedProvider(first.Referring)
	if frequency != Original {
		form.PayerControlNumber = payerControl
	}
	if first.HasOtherSubscriber() {
		patient := person(first.Patient, first.Gender)
		form.Patient, form.Relationship = &patient, relationship(first.Coverage.Relationship)
	}
	if second := first.Coverage.Secondary; second != nil && second.Payer != 0 {
		other := x12.OtherPayer{Coverage: coverage(first.SecondPayer, *second, first), Relationship: relationship(second.Relationship)}
		other.Sequence = "S"
		if first.SecondPayer.IsMedicare() {
			other.InsuranceType = second.MedicareSecondaryType
		}
		form.OtherPayers = []x12.OtherPayer{other}
	}
	for _, l := range lines {
		form.Lines = append(form.Lines, x12.ServiceLine{
			ControlNumber: l.Control, Procedure: l.CPTCode, Modifiers: l.Modifiers, Charge: x12.Cents(l.ChargeCents), Units: l.Units, From: l.From, Through: l.Through,
			Pointers: pointers(form.Diagnoses, l.Diagnoses), Ordering: namedProvider(l.Ordering),
		})
	}
	return form
}

// namedProvider returns a practitioner as a person of the form; nil for none.
func namedProvider(p *phi.Practitioner) *x12.Provider {
	if p == nil {
		return nil
	}
	return &x12.Provider{Name: p.LastName, First: p.FirstName, NPI: p.NPI}
}

func billingProvider(p Practice) x12.Provider {
	return x12.Provider{
		Name: p.Name, NPI: p.NPI, Taxonomy: p.Taxonomy, TaxID: p.TaxID, Phone: p.Phone,
		Address: x12.Address{Line1: p.Address, City: p.City, State: p.State, ZIP: strings.ReplaceAll(p.Zip, "-", "")},
	}
}

// coverage returns the coverage of a payer, with the patient or another person as subscriber.
func coverage(payer collections.Payer, covered phi.Coverage, of Claim) x12.Coverage {
	a := payer.Address
	c := x12.Coverage{
		Payer: x12.Payer{
			Party: x12.Party{ID: payer.EDI, Name: payer.Name}, FilingCode: payer.Filing,
			Address: x12.Address{Line1: a.Line1, Line2: a.Line2, City: a.City, State: a.State, ZIP: strings.ReplaceAll(a.PostalCode, "-", "")},
		},
		MemberID: memberID(payer, covered.MemberID), Group: covered.GroupNumber, Subscriber: person(of.Patient, of.Gender),
	}
	if s := covered.Subscriber; s != nil && covered.Relationship != "" && covered.Relationship != "self" {
		c.Subscriber = x12.Person{Last: s.LastName, First: s.FirstName, BirthDate: s.DateOfBirth, Gender: gender(s.Gender)}
	}
	return c
}

// memberID returns the member id as the payer reads it: the hyphens of a Medicare number are only printed on the card. Source: CMS, Medicare
// Beneficiary Identifier format (2018).
func memberID(payer collections.Payer, id string) string {
	if payer.IsMedicare() {
		return strings.ReplaceAll(id, "-", "")
	}
	return id
}

func person(p phi.Demographics, sex string) x12.Person {
	who := x12.Person{Last: p.LastName, First: p.FirstName, BirthDate: p.DateOfBirth, Gender: gender(sex)}
	if a := p.Address; a != nil {
		who.Address = x12.Address{Line1: a.Line1, Line2: a.Line2, City: a.City, State: a.State, ZIP: strings.ReplaceAll(a.Zip, "-", "")}
		if a.Country != "" && a.Country != "US" {
			who.Address.ZIP, who.Address.Country = a.Zip, a.Country
		}
	}
	return who
}

// gender returns a DMG03 code.
func gender(word string) string {
	switch word {
	case "female":
		return "F"
	case "male":
		return "M"
	}
	return "U"
}

// relationship returns an SBR02 or PAT01 code.
func relationship(word string) string {
	switch word {
	case "", "self":
		return "18"
	case "spouse":
		return "01"
	case "child":
		return "19"
	}
	return "G8"
}

// diagnoses merges the diagnoses of all lines, up to the limit of a claim: the first line's first is the principal, and each line's first ones
// come before any line's last, since each line must point to at least one.
func diagnoses(lines []FormLine) (codes []string) {
	for place := range maxDiagnoses {
		for _, l := range lines {
			if place < len(l.Diagnoses) && len(codes) < maxDiagnoses && !slices.Contains(codes, l.Diagnoses[place]) {
				codes = append(codes, l.Diagnoses[place])
			}
		}
	}
	return codes
}

// maxPointers is how many diagnoses a line points to. Source: ASC X12N 005010X222A1 (837P), SV107.
const maxPointers = 4

func pointers(all, mine []string) (places []int) {
	for _, code := range mine {
		if i := slices.Index(all, code); i >= 0 && len(places) < maxPointers && !slices.Contains(places, i+1) {
			places = append(places, i+1)
		}
	}
	return places
}
