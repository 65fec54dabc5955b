package clearinghouse

import (
	"errors"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/x12"
)

// form is a claim as the 837P has it: what is the same for all lines is the first one's.
func (c *sent) form() x12.Claim {
	told := c.told()
	first := told[0]
	form := x12.Claim{
		ControlNumber: c.control, Billing: billingProvider(first.Practice), PlaceOfService: first.Submitter.PlaceOfService, Frequency: c.frequency,
		Coverage: coverage(first.Payer, first.Coverage, first), Diagnoses: diagnoses(told),
		Rendering: &x12.Provider{
			Name: first.Provider.Last.Reveal(), First: first.Provider.First.Reveal(), NPI: first.Provider.NPI, Taxonomy: first.Provider.Taxonomy,
		},
	}
	if c.frequency != claims.Original {
		form.PayerControlNumber = c.payer
	}
	if first.OfSomebodyElse() {
		patient := person(first.Patient, first.Gender)
		form.Patient, form.Relationship = &patient, relationship(first.Coverage.Relationship)
	}
	if second := first.Coverage.Secondary; second != nil && second.Payer != 0 {
		other := x12.OtherPayer{Coverage: coverage(first.SecondPayer, *second, first), Relationship: relationship(second.Relationship)}
		other.Sequence = "S"
		form.Others = []x12.OtherPayer{other}
	}
	for _, l := range told {
		form.Lines = append(form.Lines, x12.ServiceLine{
			ControlNumber: l.control, Procedure: l.CPTCode, Modifiers: l.Modifiers, Charge: x12.Cents(l.ChargeCents), Units: l.Units, From: l.From, Through: l.Through,
			Pointers: pointers(form.Diagnoses, l.Diagnoses),
		})
	}
	return form
}

func billingProvider(p claims.Practice) x12.Provider {
	return x12.Provider{
		Name: p.Name, NPI: p.NPI, Taxonomy: p.Taxonomy, TaxID: p.TaxID, Phone: p.Phone,
		Address: x12.Address{Line1: p.Address, City: p.City, State: p.State, ZIP: strings.ReplaceAll(p.Zip, "-", "")},
	}
}

// coverage is what a subscriber has with a payer: the patient, unless it is somebody else's.
func coverage(payer collections.Payer, covered phi.Coverage, of sentLine) x12.Coverage {
	a := payer.Address
	c := x12.Coverage{
		Payer: x12.Payer{
			Party: x12.Party{ID: payer.EDI, Name: payer.Name}, FilingCode: payer.Filing,
			Address: x12.Address{Line1: a.Line1, Line2: a.Line2, City: a.City, State: a.State, ZIP: strings.ReplaceAll(a.PostalCode, "-", "")},
		},
		MemberID: strings.ReplaceAll(covered.MemberID, "-", ""), Group: covered.GroupNumber, Subscriber: person(of.Patient, of.Gender),
	}
	if s := covered.Subscriber; s != nil && covered.Relationship != "" && covered.Relationship != "self" {
		c.Subscriber = x12.Person{Last: s.LastName, First: s.FirstName, BirthDate: s.DateOfBirth, Gender: gender(s.Gender)}
	}
	return c
}

func person(p phi.Demographics, sex string) x12.Person {
	who := x12.Person{Last: p.LastName, First: p.FirstName, BirthDate: p.DateOfBirth, Gender: gender(sex)}
	if a := p.Address; a != nil {
		who.Address = x12.Address{Line1: a.Line1, Line2: a.Line2, City: a.City, State: a.State, ZIP: strings.ReplaceAll(a.Zip, "-", "")}
	}
	return who
}

// gender is as DMG03 has it.
func gender(word string) string {
	switch word {
	case "female":
		return "F"
	case "male":
		return "M"
	}
	return "U"
}

// relationship is as SBR02 and PAT01 have it.
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

// diagnoses are those of all lines, the first line's first, as many as a claim takes.
func diagnoses(lines []sentLine) (codes []string) {
	for _, l := range lines {
		for _, code := range l.Diagnoses {
			if !slices.Contains(codes, code) && len(codes) < 12 {
				codes = append(codes, code)
			}
		}
	}
	return codes
}

// maxPointers is how many diagnoses a line points to. Source: ASC X12N 005010X222A1 (837P), SV107.
const maxPointers = 4

func pointers(all, mine []string) (places []int) {
	for _, code := range mine {
		if i := slices.Index(all, code); i >= 0 && len(places) < maxPointers {
			places = append(places, i+1)
		}
	}
	return places
}

// unwritable says which lines hold what the form cannot carry, such as a name in letters without a Latin form.
func (p plan) unwritable(err error) error {
	var wrong x12.FieldErrors
	if !errors.As(err, &wrong) {
		return err
	}
	var refusals []Refusal
	for _, c := range p.claims {
		var found []claims.Finding
		for _, w := range wrong {
			if w.Claim == c.control || w.Claim == "" {
				found = append(found, claims.Finding{Code: Unwritable, Field: w.Field, Message: w.Reason})
			}
		}
		for _, l := range c.told() {
			if len(found) > 0 {
				refusals = append(refusals, Refusal{l.EntryID, found})
			}
		}
	}
	return fault.State("invalid_state", "The form of a claim cannot carry some of these lines.").
		With("warnings", []string{billing.PreflightErrors}).With("lines", refusals)
}
