package clearinghouse_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/x12"
)

// deposit is a payment of a payer as the bank has it, with the decisions that explain it.
type deposit struct {
	trace, payer string
	total        x12.Cents
	claims       []x12.ClaimPayment
	provider     []x12.ProviderAdjustment
}

// claimInHand is a claim that a payer has, with the payer's decisions so far.
type claimInHand struct {
	control  string
	isSecond bool // to the second payer
	lines    []collections.ClaimLine
	decided  []x12.ClaimPayment
	answers  int
}

// mostAnswers is how often a payer decides a claim, reversals included. More is no payer's way.
const mostAnswers = 5

// Numbers of the payers: TRN03.
const (
	firstPayer  = "1999999999"
	secondPayer = "1888888888"
)

// decide makes a payer's next decision on a claim: one that balances, in most cases; an unbalanced one; a denial; or a reversal of an earlier
// one, posted or not, alone or with the decision that replaces it.
func (c *claimInHand) decide(r *rand.Rand) []x12.ClaimPayment {
	c.answers++
	d := decideAtRandom(r, c.control, c.lines)
	d.PayerControlNumber = "ICN" + c.control
	if c.isSecond {
		d.Status = []string{"2", "2", "1", "3", "20"}[r.IntN(5)]
	} else if r.IntN(15) == 0 {
		d.Status = "19"
	}
	switch n := r.IntN(20); {
	case n == 0:
		unbalance(r, &d)
	case n < 3:
		d = denied(d)
	case n < 8 && len(c.decided) > 0:
		at := r.IntN(len(c.decided))
		back := c.decided[at].Negated()
		back.Status, c.decided = "22", slices.Delete(c.decided, at, at+1)
		if r.IntN(3) == 0 {
			return []x12.ClaimPayment{back}
		}
		c.decided = append(c.decided, d)
		return slices.Insert([]x12.ClaimPayment{d}, r.IntN(2), back) // in any order
	case n == 8:
		d.ControlNumber = "X" + d.ControlNumber
		return []x12.ClaimPayment{d}
	case n == 9: // a decision without lines
		d.Lines, d.Adjustments, d.Paid = nil, []x12.Adjustment{{Group: "PR", Code: "1", Amount: d.Charge}}, 0
	}
	c.decided = append(c.decided, d)
	return []x12.ClaimPayment{d}
}

// denied is the decision with nothing paid.
func denied(d x12.ClaimPayment) x12.ClaimPayment {
	d.Status, d.Paid, d.Adjustments, d.Lines = "4", 0, nil, slices.Clone(d.Lines)
	charge := d.Charge
	for i, l := range d.Lines {
		d.Lines[i].Paid, d.Lines[i].Adjustments = 0, []x12.Adjustment{{Group: "CO", Code: "50", Amount: l.Charge}}
		charge -= l.Charge
	}
	if charge != 0 { // lines that are not listed
		d.Adjustments = []x12.Adjustment{{Group: "CO", Code: "50", Amount: charge}}
	}
	return d
}

// newDeposit makes a payment for claims. A payer that is owed more than it pays sends nothing.
func newDeposit(r *rand.Rand, trace, payer string, claims []x12.ClaimPayment) deposit {
	d := deposit{trace: trace, payer: payer, claims: claims}
	for range max(0, r.IntN(8)-5) {
		d.provider = append(d.provider, x12.ProviderAdjustment{Reason: []string{"WO", "FB", "L6", "72", "CS"}[r.IntN(5)], Reference: "OLD", Amount: x12.Cents(r.IntN(5000) - 2000)})
	}
	for _, c := range claims {
		d.total += c.Paid
	}
	for _, a := range d.provider {
		d.total -= a.Amount
	}
	d.total = max(0, d.total)
	return d
}

// usd writes an amount as X12 does.
func usd(cents x12.Cents) string { return fmt.Sprintf("%.2f", float64(cents)/100) }

// segments are those of a payment from BPR on.
func (d deposit) segments() []string {
	method := "ACH"
	if d.total == 0 {
		method = "NON"
	}
	list := []string{
		"BPR*I*" + usd(d.total) + "*C*" + method + "************20260115", "TRN*1*" + d.trace + "*" + d.payer, "DTM*405*20260115", "N1*PR*PAYER", "N3*1 PLAZA",
		"N4*HARTFORD*CT*06101", "PER*BL*EDI*TE*8005550100", "N1*PE*ELM STREET CLINIC*XX*1234567893", "LX*1",
	}
	for _, c := range d.claims {
		list = append(list, fmt.Sprintf("CLP*%s*%s*%s*%s**12*%s*11*1", c.ControlNumber, c.Status, usd(c.Charge), usd(c.Paid), c.PayerControlNumber))
		list = append(list, casOf(c.Adjustments)...)
		for _, l := range c.Lines {
			list = append(list, fmt.Sprintf("SVC*HC:%s*%s*%s**1", l.Procedure, usd(l.Charge), usd(l.Paid)), "DTM*472*20260131")
			list = append(append(list, casOf(l.Adjustments)...), "REF*6R*"+l.ControlNumber)
		}
	}
	for _, a := range d.provider {
		list = append(list, fmt.Sprintf("PLB*1234567893*20261231*%s:%s*%s", a.Reason, a.Reference, usd(a.Amount)))
	}
	return list
}

func casOf(adjustments []x12.Adjustment) (list []string) {
	for _, a := range adjustments {
		list = append(list, fmt.Sprintf("CAS*%s*%s*%s", a.Group, a.Code, usd(a.Amount)))
	}
	return list
}

// fileOf returns one interchange with the payments.
func fileOf(number int, deposits ...deposit) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "ISA*00*          *00*          *ZZ*HOUSE1         *ZZ*SUB1           *260115*1200*^*00501*%09d*0*T*:~GS*HP*HOUSE1*SUB1*20260115*1200*1*X*005010X221A1~", number)
	for i, d := range deposits {
		list := d.segments()
		fmt.Fprintf(&b, "ST*835*%04d~%s~SE*%d*%04d~", i+1, strings.Join(list, "~"), len(list)+2, i+1)
	}
	fmt.Fprintf(&b, "GE*%d*1~IEA*1*%09d~", len(deposits), number)
	return []byte(b.String())
}
