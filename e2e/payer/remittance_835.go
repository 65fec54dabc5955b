package payer

import (
	"strconv"

	"github.com/vigilhealth/vigil/internal/x12"
)

// A Decision returns a payer's remittances for a claim, none for no answer.
type Decision func(Claim) []remittance

// A remittance is one CLP.
type remittance struct {
	status string
	sign   x12.Cents // -1 for a reversal
	lines  []outcome
}

// An outcome is the decision on one line.
type outcome struct {
	paid        x12.Cents
	adjustments []x12.Adjustment
	remarks     []string
}

// Full pays the charge.
func Full() Decision { return Partly(0, 0, 0) }

// Partly pays each line less the contractual adjustment (CO-45), the deductible (PR-1) and the coinsurance (PR-2), up to the
// charge.
func Partly(contract, deductible, coinsurance x12.Cents) Decision {
	return Adjust(
		x12.Adjustment{Group: "CO", Code: "45", Amount: contract},
		x12.Adjustment{Group: "PR", Code: "1", Amount: deductible},
		x12.Adjustment{Group: "PR", Code: "2", Amount: coinsurance},
	)
}

// Adjust pays each line less the adjustments, up to the charge.
func Adjust(adjustments ...x12.Adjustment) Decision {
	return func(c Claim) []remittance {
		r := remittance{status: "1", sign: 1}
		for _, line := range c.Lines {
			o := outcome{paid: line.Charge}
			for _, a := range adjustments {
				if a.Amount = min(a.Amount, o.paid); a.Amount != 0 {
					o.adjustments = append(o.adjustments, a)
					o.paid -= a.Amount
				}
			}
			r.lines = append(r.lines, o)
		}
		return []remittance{r}
	}
}

// FullExcept pays the charge of each line, except of a procedure that the payer paid with an earlier claim (OA-B13).
func FullExcept(paidBefore string) Decision {
	return func(c Claim) []remittance {
		r := remittance{status: "1", sign: 1}
		for _, line := range c.Lines {
			o := outcome{paid: line.Charge}
			if line.Procedure[1] == paidBefore {
				o = outcome{adjustments: []x12.Adjustment{{Group: "OA", Code: "B13", Amount: line.Charge}}}
			}
			r.lines = append(r.lines, o)
		}
		return []remittance{r}
	}
}

// Deny pays nothing, for a reason and with remarks.
func Deny(group, carc string, rarc ...string) Decision {
	return func(c Claim) []remittance {
		r := remittance{status: "4", sign: 1}
		for _, line := range c.Lines {
			r.lines = append(r.lines, outcome{adjustments: []x12.Adjustment{{Group: group, Code: carc, Amount: line.Charge}}, remarks: rarc})
		}
		return []remittance{r}
	}
}

// Reverse reverses an earlier decision.
func Reverse(earlier Decision) Decision {
	return func(c Claim) []remittance {
		list := earlier(c)
		for i := range list {
			list[i].status, list[i].sign = "22", -1
		}
		return list
	}
}

// Then combines decisions, such as a reversal and its replacement.
func Then(decisions ...Decision) Decision {
	return func(c Claim) (list []remittance) {
		for _, d := range decisions {
			list = append(list, d(c)...)
		}
		return list
	}
}

// NoDecision leaves a claim unanswered.
func NoDecision() Decision { return Then() }

// Write835 returns an 835: each claim by its decision, in full without one; up to six provider adjustments are subtracted
// from the total.
func (p *Payer) Write835(s Submission, decisions map[string]Decision, others ...x12.ProviderAdjustment) []byte {
	var claims set
	var sum x12.Cents
	for _, c := range s.Claims {
		decide, found := decisions[c.ControlNumber]
		if !found {
			decide = Full()
		}
		for _, r := range decide(c) {
			sum += claims.addClaimPayment(c, r)
		}
	}
	for _, a := range others {
		sum -= a.Amount
	}
	day, billing := p.At.Format("20060102"), x12.Party{}
	if len(s.Claims) > 0 {
		billing = s.Claims[0].Billing
	}
	method := "CHK"
	if sum == 0 {
		method = "NON"
	}
	var out set
	out.add("BPR", "I", dollars(sum), "C", method, "", "", "", "", "", "", "", "", "", "", "", day)
	out.add("TRN", "1", "EFT"+strconv.Itoa(p.Control+1), "1999999999")
	out.add("DTM", "405", day)
	out.add("N1", "PR", p.Name)
	out.add("N3", "1 Payer Plaza")
	out.add("N4", "HARTFORD", "CT", "06101")
	out.add("REF", "2U", p.ID)
	out.add("PER", "BL", "EDI SUPPORT", "TE", "8005550100")
	out.add("N1", "PE", billing.Name, "XX", billing.ID)
	out.add("LX", "1")
	out.lines = append(out.lines, claims.lines...)
	plb := []string{"PLB", billing.ID, p.At.Format("2006") + "1231"} // up to six of them in one segment
	for _, a := range others {
		reason := a.Reason
		if a.Reference != "" {
			reason += ":" + a.Reference
		}
		plb = append(plb, reason, dollars(a.Amount))
	}
	if len(others) > 0 {
		out.add(plb...)
	}
	return p.file(s.Sender, "HP", "835", x12.Guide835, false, out)
}

// filing maps the claim filing code of an 837 to that of an 835, which has fewer.
var filing = map[string]string{"CI": "12", "BL": "12", "FI": "ZZ", "11": "ZZ"}

// addClaimPayment writes one CLP with its segments, and returns the amount paid.
func (out *set) addClaimPayment(c Claim, r remittance) (paid x12.Cents) {
	var patient x12.Cents
	for _, o := range r.lines {
		paid += r.sign * o.paid
		for _, a := range o.adjustments {
			if a.Group == "PR" {
				patient += r.sign * a.Amount
			}
		}
	}
	code := c.Filing
	if other, found := filing[code]; found {
		code = other
	}
	owed := dollars(patient)
	if patient == 0 {
		owed = ""
	}
	out.add("CLP", c.ControlNumber, r.status, dollars(r.sign*c.Charge), dollars(paid), owed, code, c.Number(), c.Place, c.Frequency)
	out.add("NM1", "QC", "1", c.Patient[0], c.Patient[1], "", "", "", "MI", c.Member)
	from, through := c.days()
	out.add("DTM", "232", from)
	out.add("DTM", "233", through)
	for i, line := range c.Lines {
		out.addServiceLine(line, r.lines[i], r.sign)
	}
	return paid
}

func (out *set) addServiceLine(line Line, o outcome, sign x12.Cents) {
	composite := line.Procedure[0]
	for _, part := range line.Procedure[1:] {
		composite += ":" + part
	}
	out.add("SVC", composite, dollars(sign*line.Charge), dollars(sign*o.paid), "", line.Units)
	if line.From == line.Through {
		out.add("DTM", "472", line.From)
	} else {
		out.add("DTM", "150", line.From)
		out.add("DTM", "151", line.Through)
	}
	var group []string
	for i, a := range o.adjustments {
		if i == 0 || a.Group != o.adjustments[i-1].Group {
			if group != nil {
				out.add(group...)
			}
			group = []string{"CAS", a.Group}
		}
		group = append(group, a.Code, dollars(sign*a.Amount), a.Quantity)
	}
	if group != nil {
		out.add(group...)
	}
	out.add("REF", "6R", line.ControlNumber)
	for _, remark := range o.remarks {
		out.add("LQ", "HE", remark)
	}
}
