package reports

import (
	"github.com/vigilhealth/vigil/internal/billing"
)

// Reconciled reconciles charges: billed = paid + adjusted + patient responsibility + open. Voided and refunded entries are excluded and shown
// separately; refunds include all entries. Source: docs/decisions/billing.md, "Reports that reconcile".
type Reconciled struct {
	Billed                billing.Cents `json:"billed"`
	Expected              billing.Cents `json:"expected"`
	Paid                  billing.Cents `json:"paid"`
	Adjusted              billing.Cents `json:"adjusted"`
	PatientResponsibility billing.Cents `json:"patient_responsibility"`
	Refunded              billing.Cents `json:"refunded"`
	Open                  billing.Cents `json:"open"` // negative if payments exceed charges
	Excluded              Excluded      `json:"left_out"`
}

// Excluded is the entries that do not count.
type Excluded struct {
	Voided   ExcludedTotals `json:"voided"`
	Refunded ExcludedTotals `json:"refunded"`
}

// ExcludedTotals is the totals of excluded entries.
type ExcludedTotals struct {
	Claims   int           `json:"claims"`
	Billed   billing.Cents `json:"billed"`
	Paid     billing.Cents `json:"paid"`
	Refunded billing.Cents `json:"refunded"`
}

// totalsWithMoney returns totals by a dimension and by state, with their amounts and with voided entries.
func (m *builder) totalsWithMoney(by billing.Dimension) ([]billing.Totals, error) {
	f := m.filter(m.q.From, m.q.To)
	f.WithMoney = true
	return billing.LoadTotals(m.app, f, by, billing.ByStatus)
}

// reconcile adds up the totals. counted omits voided entries, as the other figures do.
func reconcile(sums []billing.Totals) (r Reconciled, counted []billing.Totals) {
	for _, s := range sums {
		r.Refunded += s.Refunded
		switch s.Status {
		case billing.Voided:
			r.Excluded.Voided.add(s)
			continue
		case billing.Refunded:
			r.Excluded.Refunded.add(s)
		default:
			r.Billed += s.Billed
			r.Expected += s.Amount
			r.Paid += s.Collected
			r.Adjusted += s.Adjusted
			r.PatientResponsibility += s.PatientShare
		}
		counted = append(counted, s)
	}
	r.Open = r.Billed - r.Paid - r.Adjusted - r.PatientResponsibility
	return r, counted
}

func (u *ExcludedTotals) add(s billing.Totals) {
	u.Claims += s.Claims
	u.Billed += s.Billed
	u.Paid += s.Collected
	u.Refunded += s.Refunded
}

// byCode adds up the states of each code; totals are in the order of codes.
func byCode(sums []billing.Totals) (codes []billing.Totals) {
	for first := 0; first < len(sums); {
		end := first + 1
		for end < len(sums) && sums[end].CPTCode == sums[first].CPTCode {
			end++
		}
		code := addUp(sums[first:end])
		code.CPTCode = sums[first].CPTCode
		codes = append(codes, code)
		first = end
	}
	return codes
}
