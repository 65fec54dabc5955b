package x12_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/x12"
)

// made is the creation time of the sample.
var made = time.Date(2026, 11, 2, 9, 30, 0, 0, time.UTC)

var (
	practice = x12.Provider{
		Name: "Lakeside Heart & Kidney Practice", NPI: "1234567893", Taxonomy: "207RC0000X", TaxID: "12-3456789", Phone: "(312) 555-0100",
		Address: x12.Address{Line1: "1200 Lake Shore Dr", Line2: "Suite 4", City: "Chicago", State: "IL", ZIP: "60611-1234"},
	}
	doctor   = x12.Provider{Name: "Núñez", First: "Zoë", NPI: "1245319599", Taxonomy: "207RC0000X"}
	medicare = x12.Payer{Party: x12.Party{ID: "12345", Name: "National Government Services"}, FilingCode: "MB"}
	aetna    = x12.Payer{
		Party: x12.Party{ID: "60054", Name: "Aetna"}, FilingCode: "CI",
		Address: x12.Address{Line1: "PO Box 981106", City: "El Paso", State: "TX", ZIP: "79998"},
	}
)

func person(last, first string) x12.Person {
	return x12.Person{
		Last: last, First: first, BirthDate: "1950-02-28", Gender: "F",
		Address: x12.Address{Line1: "7 Elm St", City: "Chicago", State: "IL", ZIP: "60601"},
	}
}

// claimOf returns a claim for a patient's month: device supply and two kinds of time.
func claimOf(i int) x12.Claim {
	return x12.Claim{
		ControlNumber: fmt.Sprintf("VC%08d", i), Billing: practice,
		Coverage:       x12.Coverage{Payer: medicare, MemberID: fmt.Sprintf("1EG4TE%05d", i), Subscriber: person(fmt.Sprintf("O'Brien-Müller %c", 'A'+i%26), "José")},
		PlaceOfService: "11", Frequency: "1", Diagnoses: []string{"I10", "E11.9"}, Rendering: &doctor,
		Lines: []x12.ServiceLine{
			{ControlNumber: fmt.Sprintf("L%d1", i), Procedure: "99454", Charge: 4302, Units: 1, From: "2026-10-01", Through: "2026-10-30", Pointers: []int{1, 2}},
			{ControlNumber: fmt.Sprintf("L%d2", i), Procedure: "99457", Charge: 4850, Units: 1, From: "2026-10-31", Through: "2026-10-31", Pointers: []int{1}},
			{ControlNumber: fmt.Sprintf("L%d3", i), Procedure: "99458", Modifiers: []string{"25", "95"}, Charge: 7700, Units: 2, From: "2026-10-31", Through: "2026-10-31", Pointers: []int{2}},
		},
	}
}

// batchOf returns claims of every kind: patient, spouse and child as insured, replacements, voids, a secondary payer before and after this one,
// another billing provider, another facility.
func batchOf(count int) x12.Batch {
	b := x12.Batch{
		Submitter: x12.Submitter{Party: x12.Party{ID: "VIGIL01", Name: "Lakeside Heart & Kidney Practice"}, Contact: "Billing Office", Phone: "312-555-0101"},
		Receiver:  x12.Party{ID: "CLEARHOUSE", Name: "Clearing House"},
		Usage:     "T", Interchange: 4711, Group: 4711, Set: 1, At: made,
	}
	for i := range count {
		c := claimOf(i)
		switch i % 10 {
		case 1:
			c.Coverage.Sequence, c.Coverage.InsuranceType = "S", "12"
			c.OtherPayers = []x12.OtherPayer{{
				Coverage:     x12.Coverage{Payer: aetna, MemberID: "W5", Sequence: "P", Subscriber: person("O'Brien", "Pat")},
				Relationship: "G8", ControlNumber: "AET2", DecidedOn: "2026-11-20", Paid: 10000,
				Adjustments: []x12.Adjustment{{Group: "PR", Code: "1", Amount: 5000}, {Group: "CO", Code: "45", Amount: 1852, Quantity: "2"}},
			}}
		case 2:
			c.Billing, c.Rendering = doctor, nil
			c.Billing.TaxID, c.Billing.Address, c.Billing.Contact, c.Billing.Phone = "98-7654321", practice.Address, "Front Desk", "3125550102"
			c.Lines[1].PlaceOfService = "02"
		case 3:
			patient := person("Lindström", "Åsa")
			c.Coverage.Payer, c.Patient, c.Relationship = aetna, &patient, "01"
		case 4:
			patient := person("Kowalski", "Łukasz")
			patient.Gender, patient.Middle, patient.Suffix = "M", "Q.", "Jr"
			c.Coverage.Payer, c.Coverage.Group, c.Patient, c.Relationship = aetna, "GRP-1", &patient, "19"
		case 5:
			c.Frequency, c.PayerControlNumber = "7", "2026300000001"
		case 6:
			c.Frequency, c.PayerControlNumber = "8", "2026300000002"
		case 7:
			c.OtherPayers = []x12.OtherPayer{{
				Coverage:     x12.Coverage{Payer: aetna, MemberID: "W123456789", Sequence: "S", Subscriber: person("O'Brien", "Pat")},
				Relationship: "01",
			}}
		case 8:
			secondary(&c)
		case 9:
			c.PlaceOfService = "12"
			c.Facility = &x12.Provider{Name: "Lakeside Annex", NPI: "1245319599", Address: practice.Address}
		}
		b.Claims = append(b.Claims, c)
	}
	return b
}

// secondary adds Aetna as primary payer, with a partial payment of each line.
func secondary(c *x12.Claim) {
	c.Coverage.Sequence, c.Coverage.InsuranceType = "S", "12"
	paid := x12.OtherPayer{
		Coverage:     x12.Coverage{Payer: aetna, MemberID: "W987654321", Sequence: "P", Group: "G1", Subscriber: person("O'Brien", "Pat")},
		Relationship: "18", ControlNumber: "AET0001", DecidedOn: "2026-11-20",
	}
	for i := range c.Lines {
		line := &c.Lines[i]
		line.Decisions = []x12.LineDecision{{
			PayerID: "60054", Paid: line.Charge - 1500, Units: line.Units, DecidedOn: "2026-11-20",
			Adjustments: []x12.Adjustment{{Group: "CO", Code: "45", Amount: 1000}, {Group: "PR", Code: "2", Amount: 500}},
		}}
		paid.Paid += line.Charge - 1500
	}
	c.OtherPayers = []x12.OtherPayer{paid}
}

func written(t testing.TB, b x12.Batch) []byte {
	t.Helper()
	file, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func newPayer() *payer.Payer {
	return &payer.Payer{ID: "12345", Name: "National Government Services", At: made.AddDate(0, 0, 1), Control: 100}
}

func received(t testing.TB, file []byte) payer.Submission {
	t.Helper()
	s, err := payer.Read837P(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// replaced returns a file with one occurrence of a text replaced.
func replaced(t testing.TB, file []byte, from, to string) []byte {
	t.Helper()
	if !bytes.Contains(file, []byte(from)) {
		t.Fatalf("the file holds no %q", from)
	}
	return bytes.Replace(file, []byte(from), []byte(to), 1)
}
