package clearinghouse_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/clearinghouse"
	"github.com/vigilhealth/vigil/internal/x12"
)

// randomClaim is a claim of ours, and a payer's decision about it.
type randomClaim struct {
	lines    []collections.ClaimLine
	decision x12.ClaimPayment
}

var reasonsAtRandom = []x12.Adjustment{{Group: "CO", Code: "45"}, {Group: "PR", Code: "2"}, {Group: "OA", Code: "23"}, {Group: "OA", Code: "B13"}, {Group: "CO", Code: "253"}, {Group: "PI", Code: "97"}}

// newRandomClaim makes a claim of ours, and a balanced decision.
func newRandomClaim(r *rand.Rand, number int) (c randomClaim) {
	control := fmt.Sprintf("V%08d", number)
	for i := range 1 + r.IntN(4) {
		c.lines = append(c.lines, collections.ClaimLine{
			ID: fmt.Sprint(control, i), Line: fmt.Sprint(control, "L", i), Claim: control, ChargeCents: int64(1 + r.IntN(30_000)), CPTCode: fmt.Sprint(99450 + i),
		})
	}
	c.decision = decideAtRandom(r, control, c.lines)
	return c
}

// decideAtRandom makes a balanced decision with adjustments of lines and claim, some of them increases, and some lines not listed.
func decideAtRandom(r *rand.Rand, control string, lines []collections.ClaimLine) x12.ClaimPayment {
	decision := x12.ClaimPayment{ControlNumber: control, Status: "1"}
	open := x12.Cents(0)
	adjust := func(list *[]x12.Adjustment, amount x12.Cents) {
		a := reasonsAtRandom[r.IntN(len(reasonsAtRandom))]
		if a.Amount = amount; amount < 0 && a.Group == "PR" { // no payer owes the patient
			a.Group, a.Code = "CO", "45"
		}
		*list = append(*list, a)
	}
	for i, l := range lines {
		s := x12.ServicePayment{ControlNumber: l.Line, Procedure: l.CPTCode, Charge: x12.Cents(l.ChargeCents), Paid: x12.Cents(l.ChargeCents)}
		decision.Charge += s.Charge
		if i > 0 && r.IntN(5) == 0 { // not listed
			open += s.Charge
			continue
		}
		for range r.IntN(3) {
			amount := x12.Cents(r.IntN(int(s.Paid) + 1))
			if r.IntN(9) == 0 {
				amount = -amount / 3
			}
			adjust(&s.Adjustments, amount)
			s.Paid -= amount
		}
		open += s.Paid
		decision.Lines = append(decision.Lines, s)
	}
	if unlisted := decision.Charge - sumOfCharges(decision.Lines); unlisted > 0 && r.IntN(4) == 0 { // all of them with one adjustment
		adjust(&decision.Adjustments, unlisted)
		open -= unlisted
	}
	for range r.IntN(3) {
		amount := x12.Cents(r.IntN(int(open) + 1))
		if r.IntN(5) == 0 {
			amount = -amount / 4
		}
		adjust(&decision.Adjustments, amount)
		open -= amount
	}
	decision.Paid = open
	return decision
}

func sumOfCharges(lines []x12.ServicePayment) (sum x12.Cents) {
	for _, l := range lines {
		sum += l.Charge
	}
	return sum
}

// unbalance spoils a decision by a few cents.
func unbalance(r *rand.Rand, c *x12.ClaimPayment) {
	cents := x12.Cents(1 + r.IntN(500))
	switch line := &c.Lines[r.IntN(len(c.Lines))]; r.IntN(4) {
	case 0:
		c.Paid += cents
	case 1:
		c.Charge += cents
	case 2:
		line.Paid -= cents
	case 3:
		line.Adjustments = append(line.Adjustments, x12.Adjustment{Group: "CO", Code: "96", Amount: cents})
	}
}

// What is posted of each claim is its payment, to the cent, and what is not posted has a reason, so that both are the payment of a file. The
// amounts of each line add up: charge less adjustments is its payment. A reversal posts the opposite of what it reverses.
func TestPostingIsExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(42, 835))
	posted, waiting, kept := 0, 0, 0
	for number := range 10_000 {
		total, ledger, unposted := x12.Cents(0), x12.Cents(0), x12.Cents(0)
		for i := range 1 + r.IntN(3) {
			c := newRandomClaim(r, number*10+i)
			isSpoiled := r.IntN(4) == 0
			if isSpoiled {
				unbalance(r, &c.decision)
			}
			total += c.decision.Paid
			parts, reason := clearinghouse.Apportion(c.decision, c.lines)
			if reason != "" {
				if unposted += c.decision.Paid; !isSpoiled || clearinghouse.ReasonText(reason) == "" || len(parts) > 0 {
					t.Fatalf("%d: %q for %s", number, reason, describe(c))
				}
				waiting++
				continue
			}
			posted++
			kept += checkListed(t, c, parts)
			for _, p := range parts {
				ledger += p.Paid
				rest := int64(p.Paid)
				for _, a := range p.Adjustments {
					rest += a.AmountCents
				}
				for _, l := range c.lines {
					if l.Line == p.Line && rest != l.ChargeCents && !isSpoiled {
						t.Fatalf("%d: %s comes to %d of %d in %s", number, p.Line, rest, l.ChargeCents, describe(c))
					}
				}
			}
			back := c.decision.Negated()
			back.Status = "22"
			if reversed, reason := clearinghouse.Apportion(back, c.lines); reason != "" || fmt.Sprint(reversed) != fmt.Sprint(parts) {
				t.Fatalf("%d: the reversal is %v, %q, not %v", number, reversed, reason, parts)
			}
		}
		if ledger+unposted != total {
			t.Fatalf("%d: posted %d and left %d of %d", number, ledger, unposted, total)
		}
	}
	if posted < 10_000 || waiting < 1_000 || kept < 1_000 {
		t.Errorf("%d claims were posted, %d wait, of %d only lines that are not listed were adjusted", posted, waiting, kept)
	}
}

// checkListed checks that the lines which the payer lists keep what it states for them, as long as the lines that it does not list have room for the
// claim's adjustments. It returns 1 for such a claim.
func checkListed(t *testing.T, c randomClaim, parts []clearinghouse.Posting) int {
	t.Helper()
	stated, isUnlisted := map[string]x12.Cents{}, len(parts) > len(c.decision.Lines)
	total := x12.Cents(0)
	for _, l := range c.decision.Lines {
		stated[l.ControlNumber] = l.Paid
		total += l.Paid
	}
	if !isUnlisted || len(c.decision.Adjustments) == 0 || total > c.decision.Paid {
		return 0
	}
	for _, p := range parts {
		if paid, isListed := stated[p.Line]; isListed && paid != p.Paid {
			t.Fatalf("%s was paid %d in %s", p.Line, p.Paid, describe(c))
		}
	}
	return 1
}

func describe(c randomClaim) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CLP %d %d CAS %v;", c.decision.Charge, c.decision.Paid, c.decision.Adjustments)
	for _, l := range c.decision.Lines {
		fmt.Fprintf(&b, " SVC %s %d %d CAS %v", l.ControlNumber, l.Charge, l.Paid, l.Adjustments)
	}
	return b.String()
}
