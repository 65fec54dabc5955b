package x12

func handleBPR(x *Remittance, s Segment) error {
	if x.total.ID != "" {
		return s.fault(0, "stands there twice")
	}
	x.Total, x.Method, x.PaidOn, x.total = s.cents(2), s.Element(4), s.day(16), s
	return nil
}

func handleCLP(x *Remittance, s Segment) error {
	x.Claims = append(x.Claims, ClaimPayment{
		ControlNumber: s.Element(1), Status: s.Element(2), Charge: s.cents(3), Paid: s.cents(4), PatientResponsibility: s.cents(5),
		FilingCode: s.Element(6), PayerControlNumber: s.Element(7), PlaceOfService: s.Element(8), Frequency: s.Element(9), segment: s,
	})
	return nil
}

func handleSVC(x *Remittance, s Segment) error {
	line := ServicePayment{
		Procedure: s.Component(1, 2), SubmittedProcedure: s.Component(6, 2), Charge: s.cents(2), Paid: s.cents(3), Units: or(s.Element(5), "1"), segment: s,
	}
	for n := 3; n <= 6; n++ {
		if m := s.Component(1, n); m != "" {
			line.Modifiers = append(line.Modifiers, m)
		}
	}
	c := x.claim()
	c.Lines = append(c.Lines, line)
	return nil
}

// handleREF keeps the number by which a payer's claims are sent to it, when N1 has none, and the tax number of who is paid. Source: 005010X221A1,
// REF "Additional Payer Identification" and "Payee Additional Identification".
func handleREF(x *Remittance, s Segment) error {
	switch {
	case s.Element(1) == "2U" && x.Payer.ID == "":
		x.Payer.ID = s.Element(2)
	case s.Element(1) == "TJ" && len(x.Claims) == 0:
		x.PayeeTaxID = s.Element(2)
	}
	return nil
}

// handlePLB reads up to six adjustments of one PLB.
func handlePLB(x *Remittance, s Segment) error {
	for n := 3; n <= 13; n += 2 {
		switch reason := s.Element(n); {
		case reason == "" && s.Element(n+1) == "":
			continue
		case reason == "":
			return s.fault(n, "is missing")
		case s.Element(n+1) == "":
			return s.fault(n+1, "is missing")
		}
		x.ProviderAdjustments = append(x.ProviderAdjustments, ProviderAdjustment{
			Provider: s.Element(1), Year: s.day(2), Reason: s.Component(n, 1), Reference: s.Component(n, 2), Amount: s.cents(n + 1), Ordinal: s.Ordinal,
		})
	}
	return nil
}

// readCAS reads up to six adjustments of one CAS.
func (s Segment) readCAS(list *[]Adjustment) error {
	for n := 2; n <= 17; n += 3 {
		switch code := s.Element(n); {
		case code == "" && s.Element(n+1) == "" && s.Element(n+2) == "":
			continue
		case code == "":
			return s.fault(n, "is missing")
		case s.Element(n+1) == "":
			return s.fault(n+1, "is missing")
		}
		*list = append(*list, Adjustment{Group: s.Element(1), Code: s.Element(n), Amount: s.cents(n + 1), Quantity: s.Element(n + 2)})
	}
	return nil
}

// date keeps a DTM that begins or ends something.
func (s Segment) date(from, through *string, begins, ends string) {
	switch s.Element(1) {
	case begins:
		*from = s.day(2)
	case ends:
		*through = s.day(2)
	}
}

func (c *ClaimPayment) remark(codes []string) { c.RemarkCodes = append(c.RemarkCodes, codes...) }

// checkBalance holds every sum of the file: of a line, of a claim, of the whole. Source: 005010X221A1, 1.10.2.1, "Balancing".
func (x *Remittance) checkBalance() error {
	var paid Cents
	for _, c := range x.Claims {
		rest := c.Charge - adjusted(c.Adjustments)
		for _, line := range c.Lines {
			if line.Charge-adjusted(line.Adjustments) != line.Paid {
				return line.segment.fault(3, "is not the charge less the adjustments")
			}
			rest -= adjusted(line.Adjustments)
		}
		if rest != c.Paid {
			return c.segment.fault(4, "is not the charge less the adjustments")
		}
		paid += c.Paid
	}
	for _, a := range x.ProviderAdjustments {
		paid -= a.Amount
	}
	if paid != x.Total {
		return x.total.fault(2, "is not what the claims are paid, less what is taken from the provider")
	}
	return nil
}

func adjusted(list []Adjustment) (sum Cents) {
	for _, a := range list {
		sum += a.Amount
	}
	return sum
}
