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
	destination, other := first.insurances()
	form := x12.Claim{
		ControlNumber: control, Billing: billingProvider(first.Practice), PlaceOfService: first.Submitter.PlaceOfService, Frequency: frequency,
		Coverage: coverage(destination, first), Diagnoses: diagnoses(lines),
		Rendering: &x12.Provider{
			Name: first.Provider.Last.Reveal(), First: first.Provider.First.Reveal(), NPI: first.Provider.NPI, Taxonomy: first.Provider.Taxonomy,
		},
	}
	form.Referring = namedProvider(first.Referring)
	if frequency != Original {
		form.PayerControlNumber = payerControl
	}
	if isOther(destination.Relationship) {
		patient := person(first.Patient, first.Gender)
		form.Patient, form.Relationship = &patient, relationship(destination.Relationship)
	}
	if other != nil {
		form.OtherPayers = []x12.OtherPayer{otherPayer(*other, lines)}
	}
	for _, l := range lines {
		form.PatientPaid += x12.Cents(max(0, l.PatientPaidCents))
		form.Lines = append(form.Lines, x12.ServiceLine{
			ControlNumber: l.Control, Procedure: l.CPTCode, Modifiers: l.Modifiers, Charge: x12.Cents(l.ChargeCents), Units: l.Units, From: l.From, Through: l.Through,
			Pointers: pointers(form.Diagnoses, l.Diagnoses), Ordering: orderingProviderOf(l.Claim), Decisions: lineDecisions(l.Claim),
		})
	}
	return form
}

// otherPayer returns the insurance to which the claim is not sent. On a claim to the secondary
// payer it has what the primary payer paid for all lines; its adjustments are on the lines. Source:
// ASC X12N 005010X222A1 (837P), 2320 and 2330B.
func otherPayer(other insurance, lines []FormLine) x12.OtherPayer {
	o := x12.OtherPayer{Coverage: coverage(other, lines[0].Claim), Relationship: relationship(other.Relationship)}
	for _, l := range lines {
		d := l.PrimaryDecision
		if d == nil {
			continue
		}
		o.Paid += x12.Cents(d.PaidCents)
		o.DecidedOn, o.ControlNumber = max(o.DecidedOn, d.Date), cmp.Or(o.ControlNumber, d.PayerControl)
		for _, remark := range d.Remarks {
			if !slices.Contains(o.RemarkCodes, remark) {
				o.RemarkCodes = append(o.RemarkCodes, remark)
			}
		}
	}
	return o
}

// lineDecisions returns the first payer's decision on a line of a claim to the second payer. Source: ASC X12N 005010X222A1 (837P), 2430.
func lineDecisions(c Claim) []x12.LineDecision {
	if c.PrimaryDecision == nil {
		return nil
	}
	d := x12.LineDecision{PayerID: c.Payer.EDI, Paid: x12.Cents(c.PrimaryDecision.PaidCents), Units: c.Units, DecidedOn: c.PrimaryDecision.Date}
	for _, a := range c.PrimaryDecision.Adjustments {
		if a.Group == patientGroup {
			d.Remaining += x12.Cents(a.AmountCents)
		}
		at := slices.IndexFunc(d.Adjustments, func(b x12.Adjustment) bool { return b.Group == a.Group && b.Code == a.CARC })
		if at < 0 {
			at = len(d.Adjustments)
			d.Adjustments = append(d.Adjustments, x12.Adjustment{Group: a.Group, Code: a.CARC})
		}
		d.Adjustments[at].Amount += x12.Cents(a.AmountCents)
	}
	d.Adjustments = slices.DeleteFunc(d.Adjustments, func(a x12.Adjustment) bool { return a.Amount == 0 })
	return []x12.LineDecision{d}
}

// patientGroup is the adjustment group of the patient's share. Source: ASC X12N 005010X221A1 (835), CAS01.
const patientGroup = "PR"

// namedProvider returns a practitioner as a person of the form; nil for none.
func namedProvider(p *phi.Practitioner) *x12.Provider {
	if p == nil {
		return nil
	}
	return &x12.Provider{Name: p.LastName, First: p.FirstName, NPI: p.NPI}
}

// orderingProviderOf returns who ordered the service, unless it is the rendering provider. Source: ASC X12N 005010X222A1 (837P), 2420E.
func orderingProviderOf(c Claim) *x12.Provider {
	if c.Ordering != nil && c.Ordering.NPI == c.Provider.NPI {
		return nil
	}
	return namedProvider(c.Ordering)
}

func billingProvider(p Practice) x12.Provider {
	return x12.Provider{
		Name: p.Name, NPI: p.NPI, Taxonomy: p.Taxonomy, TaxID: p.TaxID, Phone: p.Phone,
		Address: x12.Address{Line1: p.Address, City: p.City, State: p.State, ZIP: strings.ReplaceAll(p.Zip, "-", "")},
	}
}

// coverage returns the coverage of a payer, with the patient or another person as subscriber.
func coverage(covered insurance, of Claim) x12.Coverage {
	payer := covered.payer
	a := payer.Address
	c := x12.Coverage{
		Payer: x12.Payer{
			Party: x12.Party{ID: payer.EDI, Name: payer.Name}, FilingCode: payer.Filing,
			Address: x12.Address{Line1: a.Line1, Line2: a.Line2, City: a.City, State: a.State, ZIP: strings.ReplaceAll(a.PostalCode, "-", "")},
		},
		MemberID: memberID(payer, covered.MemberID), Group: covered.GroupNumber, Sequence: covered.sequence, InsuranceType: covered.insuranceType,
		Subscriber: person(of.Patient, of.Gender),
	}
	if s := covered.Subscriber; s != nil && isOther(covered.Relationship) {
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
