package reports

import (
	"github.com/vigilhealth/vigil/internal/billing"
)

// CodeUse is the use of a code. Reimbursement counts paid claims; the denial rate counts claims ever denied.
type CodeUse struct {
	CPTCode          string        `json:"cpt_code"`
	Volume           int           `json:"volume"`
	Units            int           `json:"units"`
	Revenue          billing.Cents `json:"revenue"`
	AvgReimbursement billing.Cents `json:"avg_reimbursement"`
	DenialRate       float64       `json:"denial_rate"`
}

// CPTUtilizationBody is the report of code use.
type CPTUtilizationBody struct {
	Results []CodeUse `json:"results"`
}

func (m *builder) cptUtilization() (any, error) {
	sums, err := m.totals(billing.ByCode, billing.ByStatus)
	if err != nil {
		return nil, err
	}
	body := CPTUtilizationBody{Results: []CodeUse{}}
	for _, of := range groupTotals(sums, func(s billing.Totals) string { return s.CPTCode }) {
		all, paid := addUp(of), addUp(paidTotals(of))
		body.Results = append(body.Results, CodeUse{
			of[0].CPTCode, all.Claims, all.Units, all.Amount, averageOf(paid.Collected, paid.Claims), fraction(all.DeniedClaims, all.SubmittedClaims),
		})
	}
	return body, nil
}

// groupTotals groups totals by a key, in order of first appearance.
func groupTotals(sums []billing.Totals, key func(billing.Totals) string) (list [][]billing.Totals) {
	at := map[string]int{}
	for _, s := range sums {
		i, found := at[key(s)]
		if !found {
			i = len(list)
			at[key(s)], list = i, append(list, nil)
		}
		list[i] = append(list[i], s)
	}
	return list
}
