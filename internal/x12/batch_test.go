package x12_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/x12"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A batch with a claim of every kind matches the golden file, each time.
func TestBatchGolden(t *testing.T) {
	file := written(t, batchOf(10))
	if again := written(t, batchOf(10)); !bytes.Equal(file, again) {
		t.Fatal("the same batch is another file")
	}
	lines := bytes.ReplaceAll(file, []byte("~"), []byte("~\n")) // for readability
	const golden = "testdata/batch.golden.837"
	if *update {
		if err := os.WriteFile(golden, lines, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(lines, want) {
		t.Errorf("not %s, but\n%s", golden, lines)
	}
}

// Claims are grouped by billing provider, subscriber and patient in any input order, and none is lost.
func TestClaimsAreGrouped(t *testing.T) {
	other := practice
	other.Name, other.NPI = "Second Practice", "1245319599"
	child, spouse := person("Doe", "Kim"), person("Doe", "Sam")
	make := func(number string, billing x12.Provider, patient *x12.Person, relationship string) x12.Claim {
		c := claimOf(1)
		c.ControlNumber, c.Billing, c.Patient, c.Relationship = number, billing, patient, relationship
		return c
	}
	b := batchOf(0)
	b.Claims = []x12.Claim{
		make("A1", practice, nil, ""), make("B1", other, nil, ""), make("A2", practice, &child, "19"), make("A3", practice, nil, ""),
		make("A4", practice, &spouse, "01"), make("A5", practice, &child, "19"), make("B2", other, nil, ""),
	}
	var got []string
	for _, s := range segments(t, b) {
		switch s.ID {
		case "HL":
			got = append(got, strings.Join([]string{"HL", s.Element(1), s.Element(2), s.Element(3), s.Element(4)}, "*"))
		case "CLM":
			got = append(got, s.Element(1))
		case "PAT":
			got = append(got, "PAT*"+s.Element(1))
		}
	}
	want := []string{
		"HL*1**20*1", "HL*2*1*22*0", "A1", "A3", "HL*3*1*22*1", "HL*4*3*23*0", "PAT*19", "A2", "A5", "HL*5*3*23*0", "PAT*01", "A4",
		"HL*6**20*1", "HL*7*6*22*0", "B1", "B2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func segments(t testing.TB, b x12.Batch) []x12.Segment {
	t.Helper()
	interchanges, err := x12.Read(written(t, b))
	if err != nil {
		t.Fatal(err)
	}
	return interchanges[0].Groups[0].Sets[0].Segments
}

// The guide allows a hundred claims under one subscriber: the next one starts another level.
func TestManyClaimsOfOneSubscriber(t *testing.T) {
	b := batchOf(0)
	for i := range 250 {
		c := claimOf(1)
		c.ControlNumber = fmt.Sprintf("C%d", i)
		b.Claims = append(b.Claims, c)
	}
	var counts []int
	for _, s := range segments(t, b) {
		switch {
		case s.ID == "HL" && s.Element(3) == "22":
			counts = append(counts, 0)
		case s.ID == "CLM":
			counts[len(counts)-1]++
		}
	}
	if !slices.Equal(counts, []int{100, 100, 50}) {
		t.Errorf("%v", counts)
	}
}

// The envelope carries the batch's data, and a batch without a reference uses the interchange number.
func TestBatchEnvelope(t *testing.T) {
	b := batchOf(1)
	b.Usage, b.Interchange, b.Group, b.Set, b.Reference = "P", 7, 8, 123456, "Batch-9"
	b.At = time.Date(2026, 11, 1, 1, 30, 0, 0, time.FixedZone("EST", -5*3600))
	interchanges, err := x12.Read(written(t, b))
	if err != nil {
		t.Fatal(err)
	}
	in := interchanges[0]
	group := in.Groups[0]
	got := []string{in.Sender, in.Receiver, in.Usage, in.ControlNumber, in.Date, in.Time, group.ControlNumber, group.Date, group.Version, group.Sets[0].ControlNumber}
	want := []string{"VIGIL01", "CLEARHOUSE", "P", "000000007", "261101", "0130", "8", "20261101", "005010X222A1", "123456"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if s := group.Sets[0].Segments[0]; s.Element(3) != "BATCH-9" {
		t.Error("BHT03 is not the reference")
	}
}

// Another payer's adjustments are grouped, six to a CAS.
func TestAdjustmentsOfAnotherPayer(t *testing.T) {
	b := batchOf(9)
	c := &b.Claims[8]
	c.OtherPayers[0].Adjustments = nil
	for i := range 7 {
		c.OtherPayers[0].Adjustments = append(c.OtherPayers[0].Adjustments, x12.Adjustment{Group: "CO", Code: fmt.Sprint(i + 1), Amount: x12.Cents(100 * (i + 1))})
	}
	c.OtherPayers[0].Adjustments = append(c.OtherPayers[0].Adjustments, x12.Adjustment{Group: "PR", Code: "1", Amount: -50, Quantity: "1.5"})
	b.Claims = b.Claims[8:9]
	file := string(written(t, b))
	for _, want := range []string{"~CAS*CO*1*1**2*2**3*3**4*4**5*5**6*6~CAS*CO*7*7~CAS*PR*1*-.5*1.5~AMT*D*123.52~OI*"} {
		if !strings.Contains(file, want) {
			t.Errorf("no %q in\n%s", want, strings.ReplaceAll(file, "~", "\n"))
		}
	}
}

func TestFieldErrors(t *testing.T) {
	claim := func(change func(*x12.Claim)) func(*x12.Batch) { return func(b *x12.Batch) { change(&b.Claims[0]) } }
	line := func(change func(*x12.ServiceLine)) func(*x12.Batch) {
		return func(b *x12.Batch) { change(&b.Claims[0].Lines[0]) }
	}
	other := func(change func(*x12.OtherPayer)) func(*x12.Batch) {
		return claim(func(c *x12.Claim) {
			secondary(c)
			change(&c.OtherPayers[0])
		})
	}
	for _, c := range []struct {
		field, reason string
		change        func(*x12.Batch)
	}{
		{"usage", "is missing", func(b *x12.Batch) { b.Usage = "" }},
		{"usage", "not one of", func(b *x12.Batch) { b.Usage = "X" }},
		{"interchange", "must be 1", func(b *x12.Batch) { b.Interchange = 0 }},
		{"group", "must be 1", func(b *x12.Batch) { b.Group = 1_000_000_000 }},
		{"set", "must be 1", func(b *x12.Batch) { b.Set = -1 }},
		{"at", "is missing", func(b *x12.Batch) { b.At = time.Time{} }},
		{"claims", "must be 1 to 5000", func(b *x12.Batch) { b.Claims = nil }},
		{"submitter.id", "is missing", func(b *x12.Batch) { b.Submitter.ID = " " }},
		{"submitter.id", "less than two", func(b *x12.Batch) { b.Submitter.ID = "A" }},
		{"submitter.name", "is missing", func(b *x12.Batch) { b.Submitter.Name = "~*" }},
		{"submitter.contact", "is missing", func(b *x12.Batch) { b.Submitter.Contact = "" }},
		{"submitter.phone", "digits", func(b *x12.Batch) { b.Submitter.Phone = "555-0101" }},
		{"submitter.phone", "digits", func(b *x12.Batch) { b.Submitter.Phone = "312 555 0101 ext" }},
		{"receiver.id", "more than 15", func(b *x12.Batch) { b.Receiver.ID = "ABCDEFGHIJKLMNOP" }},
		{"receiver.name", "is missing", func(b *x12.Batch) { b.Receiver.Name = "" }},
		{"reference", "more than 30", func(b *x12.Batch) { b.Reference = strings.Repeat("9", 31) }},
		{"control_number", "is missing", claim(func(c *x12.Claim) { c.ControlNumber = "" })},
		{"control_number", "form", claim(func(c *x12.Claim) { c.ControlNumber = "ABC-1" })},
		{"control_number", "form", claim(func(c *x12.Claim) { c.ControlNumber = strings.Repeat("A", 21) })},
		{"control_number", "two claims", func(b *x12.Batch) { b.Claims = append(b.Claims, b.Claims[0]) }},
		{"billing.name", "letters", claim(func(c *x12.Claim) { c.Billing.Name = "李 Clinic" })},
		{"billing.npi", "is missing", claim(func(c *x12.Claim) { c.Billing.NPI = "" })},
		{"billing.npi", "check digit", claim(func(c *x12.Claim) { c.Billing.NPI = "1234567890" })},
		{"billing.taxonomy", "form", claim(func(c *x12.Claim) { c.Billing.Taxonomy = "207R" })},
		{"billing.tax_id", "is missing", claim(func(c *x12.Claim) { c.Billing.TaxID = "" })},
		{"billing.phone", "digits", claim(func(c *x12.Claim) { c.Billing.Phone = "12" })},
		{"billing.address.line1", "is missing", claim(func(c *x12.Claim) { c.Billing.Address.Line1 = "" })},
		{"billing.address.city", "less than two", claim(func(c *x12.Claim) { c.Billing.Address.City = "X" })},
		{"billing.address.state", "not one of", claim(func(c *x12.Claim) { c.Billing.Address.State = "XX" })},
		{"billing.address.zip", "digits", claim(func(c *x12.Claim) { c.Billing.Address.ZIP = "60611" })},
		{"coverage.member_id", "is missing", claim(func(c *x12.Claim) { c.Coverage.MemberID = "" })},
		{"coverage.sequence", "not one of", claim(func(c *x12.Claim) { c.Coverage.Sequence = "1" })},
		{"coverage.insurance_type", "not one of", claim(func(c *x12.Claim) { c.Coverage.InsuranceType = "99" })},
		{"coverage.payer.filing_code", "is missing", claim(func(c *x12.Claim) { c.Coverage.Payer.FilingCode = "" })},
		{"payer.id", "is missing", claim(func(c *x12.Claim) { c.Coverage.Payer.ID = "" })},
		{"payer.address.city", "is missing", claim(func(c *x12.Claim) { c.Coverage.Payer.Address.Line1 = "PO Box 1" })},
		{"subscriber.last", "more than 60", claim(func(c *x12.Claim) { c.Coverage.Subscriber.Last = strings.Repeat("A", 61) })},
		{"subscriber.birth_date", "no date", claim(func(c *x12.Claim) { c.Coverage.Subscriber.BirthDate = "1950-02-30" })},
		{"subscriber.birth_date", "is missing", claim(func(c *x12.Claim) { c.Coverage.Subscriber.BirthDate = "" })},
		{"subscriber.gender", "not one of", claim(func(c *x12.Claim) { c.Coverage.Subscriber.Gender = "female" })},
		{"subscriber.address.zip", "is missing", claim(func(c *x12.Claim) { c.Coverage.Subscriber.Address.ZIP = "" })},
		{"relationship", "not one of", claim(func(c *x12.Claim) { c.Patient, c.Relationship = &x12.Person{}, "18" })},
		{"patient.last", "is missing", claim(func(c *x12.Claim) { c.Patient, c.Relationship = &x12.Person{}, "19" })},
		{"charge", "too large", claim(func(c *x12.Claim) { c.Lines[0].Charge = 10_000_000_000 })},
		{"place_of_service", "form", claim(func(c *x12.Claim) { c.PlaceOfService = "1" })},
		{"frequency", "is missing", claim(func(c *x12.Claim) { c.Frequency = "" })},
		{"payer_control_number", "is missing", claim(func(c *x12.Claim) { c.Frequency = "7" })},
		{"payer_control_number", "belongs to", claim(func(c *x12.Claim) { c.PayerControlNumber = "1" })},
		{"assignment", "not one of", claim(func(c *x12.Claim) { c.Assignment = "Z" })},
		{"diagnoses", "must be 1 to 12", claim(func(c *x12.Claim) { c.Diagnoses = nil })},
		{"diagnoses[1]", "form", claim(func(c *x12.Claim) { c.Diagnoses[1] = "250.00" })},
		{"diagnoses[1]", "twice", claim(func(c *x12.Claim) { c.Diagnoses[1] = "i10" })},
		{"rendering.npi", "is missing", claim(func(c *x12.Claim) { c.Rendering = &x12.Provider{Name: "A", First: "B"} })},
		{"rendering.taxonomy", "form", claim(func(c *x12.Claim) { c.Rendering = &x12.Provider{Name: "A", NPI: doctor.NPI, Taxonomy: "X"} })},
		{"facility.npi", "check digit", claim(func(c *x12.Claim) { c.Facility = &x12.Provider{Name: "A", NPI: "1", Address: practice.Address} })},
		{"facility.name", "is missing", claim(func(c *x12.Claim) { c.Facility = &x12.Provider{Address: practice.Address} })},
		{"lines", "must be 1 to 50", claim(func(c *x12.Claim) { c.Lines = nil })},
		{"lines[0].procedure", "form", line(func(l *x12.ServiceLine) { l.Procedure = "9945" })},
		{"lines[0].modifiers[0]", "form", line(func(l *x12.ServiceLine) { l.Modifiers = []string{"X"} })},
		{"lines[0].modifiers", "more than 4", line(func(l *x12.ServiceLine) { l.Modifiers = []string{"25", "26", "27", "28", "29"} })},
		{"lines[0].charge", "below zero", line(func(l *x12.ServiceLine) { l.Charge = -1 })},
		{"lines[0].units", "must be 1", line(func(l *x12.ServiceLine) { l.Units = 0 })},
		{"lines[0].place_of_service", "form", line(func(l *x12.ServiceLine) { l.PlaceOfService = "home" })},
		{"lines[0].pointers", "must be 1 to 4", line(func(l *x12.ServiceLine) { l.Pointers = nil })},
		{"lines[0].pointers[0]", "must be 1 to 2", line(func(l *x12.ServiceLine) { l.Pointers = []int{3} })},
		{"lines[0].pointers[1]", "twice", line(func(l *x12.ServiceLine) { l.Pointers = []int{1, 1} })},
		{"lines[0].from", "is missing", line(func(l *x12.ServiceLine) { l.From = "" })},
		{"lines[0].through", "before the first", line(func(l *x12.ServiceLine) { l.Through = "2026-09-30" })},
		{"lines[0].control_number", "is missing", line(func(l *x12.ServiceLine) { l.ControlNumber = "" })},
		{"lines[1].control_number", "two lines", line(func(l *x12.ServiceLine) { l.ControlNumber = "L02" })},
		{"others", "more than 10", claim(func(c *x12.Claim) { c.OtherPayers = make([]x12.OtherPayer, 11) })},
		{"others[0].sequence", "another payer", other(func(o *x12.OtherPayer) { o.Sequence = "S" })},
		{"others[0].relationship", "is missing", other(func(o *x12.OtherPayer) { o.Relationship = "" })},
		{"others[0].member_id", "is missing", other(func(o *x12.OtherPayer) { o.MemberID = "" })},
		{"others[0].payer.name", "is missing", other(func(o *x12.OtherPayer) { o.Payer.Name = "" })},
		{"others[0].paid", "below zero", other(func(o *x12.OtherPayer) { o.Paid = -1 })},
		{"others[0].adjustments[0].group", "not one of", other(func(o *x12.OtherPayer) { o.Adjustments = []x12.Adjustment{{Group: "XX", Code: "1"}} })},
		{"others[0].adjustments[0].amount", "too large", other(func(o *x12.OtherPayer) { o.Adjustments = []x12.Adjustment{{Group: "CO", Code: "1", Amount: -1e10}} })},
		{"others[0].adjustments[0].quantity", "form", other(func(o *x12.OtherPayer) { o.Adjustments = []x12.Adjustment{{Group: "CO", Code: "1", Quantity: "x"}} })},
		{"others[0].adjustments", "room", other(func(o *x12.OtherPayer) {
			o.Adjustments = slices.Repeat([]x12.Adjustment{{Group: "CO", Code: "1", Amount: 1}}, 31)
		})},
		{"others[0].decided_on", "no date", claim(func(c *x12.Claim) {
			c.OtherPayers = []x12.OtherPayer{{
				Coverage: x12.Coverage{Payer: aetna, MemberID: "1", Sequence: "S", Subscriber: person("A", "B")}, Relationship: "01", DecidedOn: "yesterday",
			}}
		})},
		{"lines[0].decisions[0].payer_id", "none of", line(func(l *x12.ServiceLine) { l.Decisions = []x12.LineDecision{{PayerID: "1"}} })},
		{"lines[0].decisions[0].units", "must be 1", line(func(l *x12.ServiceLine) { l.Decisions = []x12.LineDecision{{PayerID: "1", DecidedOn: "2026-11-01"}} })},
		{"lines[0].decisions[0].decided_on", "is missing", line(func(l *x12.ServiceLine) { l.Decisions = []x12.LineDecision{{PayerID: "1", Units: 1}} })},
	} {
		t.Run(c.field+" "+c.reason, func(t *testing.T) {
			b := batchOf(1)
			c.change(&b)
			file, err := b.Bytes()
			var wrong x12.FieldErrors
			if !errors.As(err, &wrong) || file != nil {
				t.Fatalf("a file of %d bytes and %v", len(file), err)
			}
			if !slices.ContainsFunc(wrong, func(e x12.FieldError) bool { return e.Field == c.field && strings.Contains(e.Reason, c.reason) }) {
				t.Errorf("%v", wrong)
			}
			if text := err.Error(); strings.Contains(text, "BRIEN") || strings.Contains(text, "1EG4TE") {
				t.Errorf("it names the patient: %s", text)
			}
		})
	}
}

// Bytes returns all errors at once, by claim, in a stable order.
func TestAllFieldErrorsAreReturned(t *testing.T) {
	b := batchOf(3)
	b.Receiver.Name = ""
	b.Claims[0].Lines[1].Units = 0
	b.Claims[2].Diagnoses[0] = "?"
	_, err := b.Bytes()
	const want = "x12: receiver.name is missing; x12: claim VC00000000: lines[1].units must be 1 to 9999; " +
		"x12: claim VC00000002: diagnoses[0] does not have the format that the guide requires"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// Receivers that do not require nine digits get five.
func TestFiveDigitZIP(t *testing.T) {
	b := batchOf(1)
	b.FiveDigitZIP = true
	b.Claims[0].Billing.Address.ZIP = "60611"
	if file := written(t, b); !bytes.Contains(file, []byte("~N4*CHICAGO*IL*60611~")) {
		t.Error("the ZIP code is not there")
	}
}

func TestAmounts(t *testing.T) {
	for cents, want := range map[x12.Cents]string{0: "0", 1: ".01", 50: ".5", 100: "1", 4302: "43.02", 4850: "48.5", 100_000: "1000", -5: "-.05", -12300: "-123"} {
		if got := x12.Decimal(cents); got != want {
			t.Errorf("%d is %q, want %q", cents, got, want)
		}
	}
	for text, want := range map[string]x12.Cents{"0": 0, "-0": 0, ".5": 50, "5.": 500, "0043.020": 4302, "-1.5": -150, "9999999999.99": 999999999999} {
		if got, ok := x12.CentsOf(text); !ok || got != want {
			t.Errorf("%q is %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-", ".", "1.005", "1e3", "1,5", "+1", "--1", "1.2.3", "12345678901"} {
		if got, ok := x12.CentsOf(text); ok {
			t.Errorf("%q is taken as %d", text, got)
		}
	}
}

func TestPlainText(t *testing.T) {
	for text, want := range map[string]string{
		"Zoë Núñez-Ångström": "ZOE NUNEZ-ANGSTROM", "Łukasz Żółć": "LUKASZ ZOLC", "Straße": "STRASSE", "Æsir Øre Þór": "AESIR ORE THOR",
		"O’Brien": "O'BRIEN", "a*b~c:d^e|f": "A B C D E F", "  two \t words\n": "TWO WORDS", "Smith & Sons, Ltd.": "SMITH & SONS, LTD.", "ﬁ": "FI", "№ 5": "NO 5",
	} {
		if got, ok := x12.Plain(text); !ok || got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{"李", "Иван", "Smith 李", "٣"} {
		if got, ok := x12.Plain(text); ok {
			t.Errorf("%q is taken as %q", text, got)
		}
	}
}

func TestNPI(t *testing.T) {
	got := map[string]bool{}
	want := map[string]bool{"1234567893": true, "1245319599": true, "1234567890": false, "123456789": false, "12345678A3": false, "": false}
	for number := range want {
		got[number] = x12.IsNPI(number)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}
