package clearinghouse

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/x12"
)

// lineDecision is a payer's decision about one service line.
type lineDecision struct {
	line             collections.ClaimLine
	key              string // of the decision, so that it is posted once
	paid             x12.Cents
	adjustments      []collections.Adjustment
	remarks          []string // of the claim, and of a line without adjustments that could have them
	paidCode         string   // on which the payer decided instead of our code; "" for ours
	isListed         bool     // the payer states the line
	reversesUnposted bool     // a reversal of a decision that was not posted
	missing          int64    // what the line's own adjustments do not explain
}

// apportion assigns a claim's decisions to our lines, so that the lines' payments add up to the claim's, or returns why it cannot. Amounts of a
// reversal are the reversed ones. Source: docs/decisions/claims.md, "Posting an 835".
func apportion(c x12.ClaimPayment, lines []collections.ClaimLine) (parts []lineDecision, reason string) {
	if !c.Balanced() {
		return nil, unbalanced
	}
	if c.IsReversal() {
		c = c.Negated()
	}
	if c.Paid < 0 || c.Charge < 0 {
		return nil, wrongSign
	}
	if len(c.Lines) == 0 {
		parts, reason = wholeClaim(c, lines)
	} else {
		parts, reason = listedLines(c, lines)
	}
	if reason != "" {
		return nil, reason
	}
	if len(c.Lines) > 0 && c.PaidAfterAdjustments() {
		shareByMissing(parts, claimAdjustments(c.Adjustments, c.RemarkCodes))
	} else {
		shareAdjustments(parts, claimAdjustments(c.Adjustments, c.RemarkCodes))
	}
	sum := x12.Cents(0)
	for i := range parts {
		sum += parts[i].paid
		parts[i].remarks = distinctTexts(c.RemarkCodes, parts[i].remarks)
	}
	switch {
	case sum != c.Paid:
		return nil, unbalanced
	case slices.ContainsFunc(parts, func(d lineDecision) bool { return d.paid < 0 }):
		return nil, wrongSign
	}
	return parts, ""
}

// wholeClaim is a decision without service lines: of the only line of a claim, or of all lines if nothing was paid.
func wholeClaim(c x12.ClaimPayment, lines []collections.ClaimLine) ([]lineDecision, string) {
	if len(lines) == 1 {
		return []lineDecision{{line: lines[0], paid: c.Charge}}, ""
	}
	parts := make([]lineDecision, len(lines))
	charge := x12.Cents(0)
	for i, l := range lines {
		parts[i] = lineDecision{line: l, paid: x12.Cents(l.ChargeCents)}
		charge += parts[i].paid
	}
	if c.Paid != 0 || charge != c.Charge {
		return nil, noServiceLines
	}
	return parts, ""
}

// listedLines is a decision with service lines, before the claim's adjustments. Our lines that the payer does not list belong to it if the claim's
// charge has theirs.
func listedLines(c x12.ClaimPayment, lines []collections.ClaimLine) (parts []lineDecision, reason string) {
	rest, matched := c.Charge, matchLines(c, lines)
	if slices.Contains(matched, -1) {
		return nil, unknownLine
	}
	for n, service := range c.Lines {
		rest -= service.Charge
		d := lineDecision{
			line: lines[matched[n]], paid: service.Paid, adjustments: claimAdjustments(service.Adjustments, service.RemarkCodes), isListed: true,
			missing: int64(service.Unexplained()),
		}
		if len(d.adjustments) == 0 {
			d.remarks = service.RemarkCodes
		}
		if service.Procedure != d.line.CPTCode {
			d.paidCode = service.Procedure
		}
		if at := slices.IndexFunc(parts, func(p lineDecision) bool { return p.line.ID == d.line.ID }); at >= 0 { // the payer split our line
			parts[at].paid, parts[at].missing = parts[at].paid+d.paid, parts[at].missing+d.missing
			parts[at].adjustments = append(parts[at].adjustments, d.adjustments...)
			parts[at].remarks = append(parts[at].remarks, d.remarks...)
			parts[at].paidCode = cmp.Or(parts[at].paidCode, d.paidCode)
			continue
		}
		parts = append(parts, d)
	}
	if rest == 0 {
		return parts, ""
	}
	unlisted := slices.DeleteFunc(slices.Clone(lines), func(l collections.ClaimLine) bool {
		return slices.ContainsFunc(parts, func(p lineDecision) bool { return p.line.ID == l.ID })
	})
	for _, l := range linesOfCharge(unlisted, rest) {
		parts = append(parts, lineDecision{line: l, paid: x12.Cents(l.ChargeCents)})
		rest -= x12.Cents(l.ChargeCents)
	}
	if rest != 0 {
		return nil, unbalanced
	}
	return parts, ""
}

// linesOfCharge returns the lines with a charge: all, or one; none if neither has it.
func linesOfCharge(lines []collections.ClaimLine, charge x12.Cents) []collections.ClaimLine {
	sum := x12.Cents(0)
	for i, l := range lines {
		if x12.Cents(l.ChargeCents) == charge {
			return lines[i : i+1]
		}
		sum += x12.Cents(l.ChargeCents)
	}
	if sum == charge {
		return lines
	}
	return nil
}

// matchLines returns for each service line the position of our line, or -1: by our line control number, else the only line, else the only one with
// the procedure and day that no other service line names.
func matchLines(c x12.ClaimPayment, lines []collections.ClaimLine) []int {
	found, taken := make([]int, len(c.Lines)), map[int]bool{}
	for n, service := range c.Lines {
		found[n] = slices.IndexFunc(lines, func(l collections.ClaimLine) bool { return strings.EqualFold(l.Line, service.ControlNumber) })
		taken[found[n]] = true
	}
	for n, service := range c.Lines {
		if found[n] >= 0 {
			continue
		}
		if len(lines) == 1 && len(c.Lines) == 1 && service.ControlNumber == "" {
			found[n] = 0
			continue
		}
		for i, l := range lines {
			if !taken[i] && isSameService(c, service, l) {
				found[n], taken[i] = i, true
				break
			}
		}
	}
	return found
}

// isSameService reports whether a service line without our number is about our line, by its procedure and day.
func isSameService(c x12.ClaimPayment, service x12.ServicePayment, l collections.ClaimLine) bool {
	if service.Procedure != l.CPTCode && service.SubmittedProcedure != l.CPTCode {
		return false
	}
	from := cmp.Or(service.From, c.From)
	through := cmp.Or(service.Through, service.From, c.Through, from)
	return from == "" || from <= l.ServiceDate && l.ServiceDate <= through
}

// claimAdjustments converts a payer's adjustments, with its remark codes on the first.
func claimAdjustments(list []x12.Adjustment, remarks []string) []collections.Adjustment {
	var out []collections.Adjustment
	for i, a := range list {
		adjusted := collections.Adjustment{Group: a.Group, CARC: a.Code, AmountCents: int64(a.Amount), RARC: []string{}}
		if i == 0 {
			adjusted.RARC = append(adjusted.RARC, remarks...)
		}
		out = append(out, adjusted)
	}
	return out
}

// shareAdjustments takes the claim's adjustments from what its lines were paid. One that equals a line which the payer does not list is that line's.
// The others are shared in proportion to what is open: increases first, so that a later reduction has room. As long as the lines that are not listed have
// room for them, the listed ones keep what the payer states for them.
func shareAdjustments(parts []lineDecision, list []collections.Adjustment) {
	var shared []collections.Adjustment
	for _, a := range list {
		i := slices.IndexFunc(parts, func(d lineDecision) bool {
			return !d.isListed && len(d.adjustments) == 0 && a.AmountCents > 0 && int64(d.paid) == a.AmountCents
		})
		if i < 0 {
			shared = append(shared, a)
			continue
		}
		parts[i].adjust(a, a.AmountCents)
	}
	parts = partsToShare(parts, shared)
	slices.SortStableFunc(shared, func(a, b collections.Adjustment) int {
		return cmp.Compare(min(a.AmountCents, 0), min(b.AmountCents, 0))
	})
	for _, a := range shared {
		weights := make([]int64, len(parts))
		for i, d := range parts {
			weights[i] = max(0, int64(d.paid))
		}
		if slices.Max(weights) == 0 {
			for i, d := range parts {
				weights[i] = d.line.ChargeCents
			}
		}
		for i, part := range proportional(a.AmountCents, weights) {
			parts[i].adjust(a, part)
		}
	}
}

// partsToShare returns the lines that share adjustments of the claim: those that are not listed if they were paid as much, else all. Source: ASC X12N
// 005010X221A1 (835), 1.10.2.1: a listed line balances without them.
func partsToShare(parts []lineDecision, shared []collections.Adjustment) []lineDecision {
	first := slices.IndexFunc(parts, func(d lineDecision) bool { return !d.isListed }) // after the listed ones
	if first <= 0 {
		return parts
	}
	room := int64(0)
	for _, d := range parts[first:] {
		room += int64(d.paid)
	}
	for _, a := range shared {
		room -= a.AmountCents
	}
	if room < 0 {
		return parts
	}
	return parts[first:]
}

// adjust takes an amount of an adjustment from what the line was paid.
func (d *lineDecision) adjust(a collections.Adjustment, amount int64) {
	d.paid -= x12.Cents(amount)
	d.addAdjustment(a, amount)
}

func (d *lineDecision) addAdjustment(a collections.Adjustment, amount int64) {
	if amount != 0 {
		a.AmountCents = amount
		d.adjustments = append(d.adjustments, a)
	}
}

// shareByMissing assigns the claim's adjustments to lines with payments stated after them: each line takes, in order, what its own adjustments do
// not explain.
func shareByMissing(parts []lineDecision, list []collections.Adjustment) {
	for _, a := range list {
		left := a.AmountCents
		for i := range parts {
			part := min(left, parts[i].missing)
			if left < 0 {
				part = max(left, parts[i].missing)
			}
			if i == len(parts)-1 {
				part = left // increases and reductions beyond what is missing cancel each other
			}
			if (part < 0) == (left < 0) {
				parts[i].addAdjustment(a, part)
				parts[i].missing -= part
				left -= part
			}
		}
	}
}

// proportional divides an amount by weights, to the cent: parts are rounded down, and the cents left go to the largest remainders. Without any
// weight the first part is all of it.
func proportional(amount int64, weights []int64) []int64 {
	parts, total := make([]int64, len(weights)), int64(0)
	for _, w := range weights {
		total += w
	}
	if total == 0 {
		parts[0] = amount
		return parts
	}
	size := uint64(max(amount, -amount)) //nolint:gosec // G115: not negative, as are the weights and their sum
	remainders, order, left := make([]uint64, len(weights)), make([]int, len(weights)), size
	for i, w := range weights {
		order[i] = i
		high, low := bits.Mul64(size%uint64(total), uint64(w)) //nolint:gosec // G115; the product of two amounts may need more than 64 bits
		quotient, remainder := bits.Div64(high, low, uint64(total))
		quotient += size / uint64(total) * uint64(w)         //nolint:gosec // G115
		parts[i], remainders[i] = int64(quotient), remainder //nolint:gosec // G115: at most the amount
		left -= quotient
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
	for _, i := range order[:left] {
		parts[i]++
	}
	if amount < 0 {
		for i := range parts {
			parts[i] = -parts[i]
		}
	}
	return parts
}

// patientOwes reports whether the patient owes a part.
func (d lineDecision) patientOwes() bool {
	return slices.ContainsFunc(d.adjustments, func(a collections.Adjustment) bool { return a.Group == billing.GroupPatient && a.AmountCents > 0 })
}

// distinctTexts joins two lists without repetitions, in order.
func distinctTexts(list, more []string) []string {
	out := []string{}
	for _, text := range slices.Concat(list, more) {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
