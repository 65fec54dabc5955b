package x12_test

import (
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/x12"
)

// accepted validates a file with a third-party program.
func accepted(t *testing.T, what string, file []byte) payer.ReadResult {
	t.Helper()
	found := payer.Pyx12.Read(t, file)
	if !found.OK || len(found.Errors) > 0 {
		t.Errorf("%s: %q", what, found.Errors)
	}
	return found
}

// A file of a thousand claims of every kind is valid by pyx12's maps of the guides, and a third-party model of the 837P contains all of it.
func TestThousandClaimsPassOtherReaders(t *testing.T) {
	t.Parallel()
	b := batchOf(vigiltest.Rounds(1000, 200))
	file := written(t, b)
	answer := accepted(t, "837P", file).Answer
	answers, err := x12.ReadResponses([]byte(answer), b.Submitter.ID)
	if err != nil {
		t.Fatal(err)
	}
	if s := answers[0].ImplementationAck; s == nil || s.Group != "4711" || s.Rejected() || len(s.Sets) != 1 || s.Sets[0].ControlNumber != "0001" || s.Sets[0].Code != "A" {
		t.Errorf("the 999 that pyx12 answers with is read as %#v", s)
	}
	found := payer.LinuxForHealth.Read(t, file)
	var charge x12.Cents
	lines := 0
	for _, c := range b.Claims {
		charge += c.Charge()
		lines += len(c.Lines)
	}
	if found.Claims != len(b.Claims) || found.Lines != lines || found.Cents != int64(charge) {
		t.Errorf("linuxforhealth finds %+v", found)
	}
	if found := payer.ReadWithImsweb(t, file); !found.OK || found.Claims != len(b.Claims) || found.Lines != lines {
		t.Errorf("imsweb finds %d claims, %d lines and %.10q", found.Claims, found.Lines, found.Errors)
	}
}

// A rejection in pyx12's 999 is read as rejected, at the right position.
func TestReadPyx12Rejection(t *testing.T) {
	t.Parallel()
	file := replaced(t, written(t, batchOf(2)), "*Y*A*Y*Y~", "*Y*Q*Y*Y~")
	found := payer.Pyx12.Read(t, file)
	if found.OK {
		t.Fatal("pyx12 took an assignment code that the guide has not")
	}
	answers, err := x12.ReadResponses([]byte(found.Answer), "VIGIL01")
	if err != nil {
		t.Fatal(err)
	}
	set := answers[0].ImplementationAck.Sets[0]
	if !set.Rejected() || len(set.Errors) == 0 || set.Errors[0].Segment != "CLM" || set.Errors[0].Elements[0].Position != 7 {
		t.Errorf("read as %#v", set)
	}
}

// Files of the tests' payer are valid too, and a third-party reader of the 835 counts and adds the same.
func TestPayerFilesPassOtherReaders(t *testing.T) {
	t.Parallel()
	p := newPayer()
	s := received(t, written(t, batchOf(vigiltest.Rounds(200, 60))))
	id := func(i int) string { return s.Claims[i].ControlNumber }
	accepted(t, "999", p.Write999(s))
	accepted(t, "999 that rejects", p.Write999(s, payer.Fault{Claim: id(1), Element: 2, Code: "1"}))
	accepted(t, "277CA", p.Write277CA(s, map[string]payer.Rejection{id(1): {Category: "A7", Code: "562", Entity: "85"}, id(2): {Category: "A3", Code: "21"}}))
	file := p.Write835(s, map[string]payer.Decision{
		id(1): payer.Deny("CO", "50", "N115", "M25"),
		id(2): payer.Partly(1000, 500, 300),
		id(3): payer.Then(payer.Reverse(payer.Full()), payer.Partly(100, 0, 0)),
		id(4): payer.NoDecision(),
	}, x12.ProviderAdjustment{Reason: "WO", Reference: "OLD1", Amount: 1234}, x12.ProviderAdjustment{Reason: "L6", Amount: -55})
	accepted(t, "835", file)
	answers, err := x12.ReadResponses(file, "VIGIL01")
	if err != nil {
		t.Fatal(err)
	}
	ours := answers[0].Remittance
	lines, adjustments := 0, 0
	for _, c := range ours.Claims {
		lines += len(c.Lines)
		for _, line := range c.Lines {
			adjustments += len(line.Adjustments)
		}
	}
	found := payer.Oxedi.Read(t, file)
	if !found.OK || found.Claims != len(ours.Claims) || found.Lines != lines || found.Adjustments != adjustments || found.Others != len(ours.ProviderAdjustments) ||
		found.Cents != int64(ours.Total) {
		t.Errorf("oxedi finds %+v, we %d claims, %d lines, %d adjustments, %d others, %d", found, len(ours.Claims), lines, adjustments, len(ours.ProviderAdjustments), ours.Total)
	}
}
