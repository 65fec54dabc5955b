package x12

import "slices"

// checkBalance checks the total of the file. A total that differs though each claim is balanced contradicts the file. Unbalanced claims, see
// [ClaimPayment.Balanced], are left to the caller, as is a debt beyond all payments that the payer does not carry forward. Source: 005010X221A1,
// 1.10.2.1, "Balancing".
func (r *Remittance) checkBalance() error {
	if slices.ContainsFunc(r.Claims, func(c ClaimPayment) bool { return !c.Balanced() }) {
		return nil
	}
	if rest := r.Total - r.Net(); rest == 0 || r.Total == 0 && rest > 0 {
		return nil
	}
	return r.total.fault(2, "is not the sum of the claim payments less the provider adjustments")
}

// Net returns the claim payments less the provider adjustments.
func (r *Remittance) Net() (sum Cents) {
	for _, c := range r.Claims {
		sum += c.Paid
	}
	for _, a := range r.ProviderAdjustments {
		sum -= a.Amount
	}
	return sum
}

// Balanced reports whether the claim's charge less all adjustments is its payment, and each line's charge less its adjustments is the line's
// payment. Of lines with payments stated after the claim's adjustments, the sums must agree. A claim that cannot be read is not. Source: 005010X221A1, 1.10.2.1, "Balancing".
func (c ClaimPayment) Balanced() bool {
	if c.ParseError != nil {
		return false
	}
	rest := c.Charge - SumAdjustments(c.Adjustments)
	for _, line := range c.Lines {
		rest -= SumAdjustments(line.Adjustments)
	}
	linesBalance := !slices.ContainsFunc(c.Lines, func(line ServicePayment) bool { return line.Unexplained() != 0 })
	return rest == c.Paid && (linesBalance || c.PaidAfterAdjustments())
}

// PaidAfterAdjustments reports whether the lines' payments are stated after the claim's adjustments: each line lacks a part of them, all together
// the whole.
func (c ClaimPayment) PaidAfterAdjustments() bool {
	total := SumAdjustments(c.Adjustments)
	var missing, paid Cents
	for _, line := range c.Lines {
		if m := line.Unexplained(); m != 0 && (m < 0) != (total < 0) {
			return false
		}
		missing, paid = missing+line.Unexplained(), paid+line.Paid
	}
	return total != 0 && missing == total && paid == c.Paid
}

// Unexplained returns what the line's own adjustments do not explain of the difference between charge and payment.
func (p ServicePayment) Unexplained() Cents { return p.Charge - SumAdjustments(p.Adjustments) - p.Paid }

// Negated returns the claim with the opposite sign of all amounts: a reversal as the decision that it reverses.
func (c ClaimPayment) Negated() ClaimPayment {
	c.Charge, c.Paid, c.PatientResponsibility = -c.Charge, -c.Paid, -c.PatientResponsibility
	c.Adjustments, c.Lines = negated(c.Adjustments), slices.Clone(c.Lines)
	for i, line := range c.Lines {
		c.Lines[i].Charge, c.Lines[i].Paid, c.Lines[i].Adjustments = -line.Charge, -line.Paid, negated(line.Adjustments)
	}
	return c
}

func negated(list []Adjustment) []Adjustment {
	list = slices.Clone(list)
	for i := range list {
		list[i].Amount = -list[i].Amount
	}
	return list
}

// SumAdjustments adds up adjustments.
func SumAdjustments(list []Adjustment) (sum Cents) {
	for _, a := range list {
		sum += a.Amount
	}
	return sum
}
