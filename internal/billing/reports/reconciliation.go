package reports

import (
	"github.com/vigilhealth/vigil/internal/billing"
)

// Reconciled is what was charged, and what came of it: billed = paid + adjusted + patient responsibility + open. Voided and refunded entries are left
// out and told apart; what was paid back is that of all. Source: docs/decisions/billing.md, "Reports that reconcile".
type Reconciled struct {
	Billed                billing.Cents `json:"billed"`
	Expected              billing.Cents `json:"expected"`
	Paid                  billing.Cents `json:"paid"`
	Adjusted              billing.Cents `json:"adjusted"`
	PatientResponsibility billing.Cents `json:"patient_responsibility"`
	Refunded              billing.Cents `json:"refunded"`
	Open                  billing.Cents `json:"open"` // less than nothing where more came than was charged
	Excluded              Excluded      `json:"left_out"`
}

// Excluded are the entries that do not count.
type Excluded struct {
	Voided   ExcludedTotals `json:"voided"`
	Refunded ExcludedTotals `json:"refunded"`
}

// ExcludedTotals is what entries came to that do not count any more.
type ExcludedTotals struct {
	Claims   int           `json:"claims"`
	Billed   billing.Cents `json:"billed"`
	Paid     billing.Cents `json:"paid"`
	Refunded billing.Cents `json:"refunded"`
}

// totalsWithMoney reads what the entries asked about come to by a dimension and by state, with their money, voided ones too.
func (m *builder) totalsWithMoney(by billing.Dimension) ([]billing.Totals, error) {
	f := m.filter(m.q.From, m.q.To)
	f.WithMoney = true
	return billing.LoadTotals(m.app, f, by, billing.ByStatus)
}

// reconcile adds up what counts. counted are the sums without those of voided entries, as the other figures take them.
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

// byCode adds up the states of each code; sums come in the order of codes.
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
