package reports

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vigilhealth/vigil/internal/billing"
)

func paidClaims(sums []billing.Totals) (n int) { return addUp(paidTotals(sums)).Claims }

// paidTotals returns the totals of paid claims without a refund due.
func paidTotals(sums []billing.Totals) []billing.Totals {
	return slices.DeleteFunc(slices.Clone(sums), func(s billing.Totals) bool { return s.Status != billing.Paid })
}

// DenialReason is a denial code, with its most frequent description.
type DenialReason struct {
	Code        string `json:"code"`
	Description string `json:"description"`
	Count       int    `json:"count"`
}

// String formats the reason for a table.
func (r DenialReason) String() string { return fmt.Sprintf("%s (%d)", r.Code, r.Count) }

// PayerRates is the paid and the ever denied claims of a payer, out of those ever submitted.
type PayerRates struct {
	PayerID             *int64         `json:"payer_id"`
	Payer               string         `json:"payer"`
	Submitted           int            `json:"submitted"`
	Paid                int            `json:"paid"`
	Denied              int            `json:"denied"`
	ApprovalRate        float64        `json:"approval_rate"`
	DenialRate          float64        `json:"denial_rate"`
	AvgDaysToPayment    float64        `json:"avg_days_to_payment"`
	CommonDenialReasons []DenialReason `json:"common_denial_reasons"`
}

// PayerPerformanceBody is the report of payers.
type PayerPerformanceBody struct {
	Results []PayerRates `json:"results"`
}

// maxReasons is how many denial reasons are listed for each payer.
const maxReasons = 5

func (m *builder) payerPerformance() (any, error) {
	sums, err := m.totals(billing.ByPayer, billing.ByStatus)
	if err != nil {
		return nil, err
	}
	names, err := m.payers(sums)
	if err != nil {
		return nil, err
	}
	reasons, err := m.denialReasons()
	if err != nil {
		return nil, err
	}
	body := PayerPerformanceBody{Results: []PayerRates{}}
	for _, of := range groupTotals(sums, func(s billing.Totals) string { return s.Payer }) {
		all, paid, payer := addUp(of), paidClaims(of), of[0].Payer
		body.Results = append(body.Results, PayerRates{
			PayerID: recordNumber(payer), Payer: names[payer], Submitted: all.SubmittedClaims, Paid: paid, Denied: all.DeniedClaims,
			ApprovalRate: fraction(paid, all.SubmittedClaims), DenialRate: fraction(all.DeniedClaims, all.SubmittedClaims),
			AvgDaysToPayment: ratio(int64(all.DaysToPayment), int64(all.PaidDatedClaims), 1), CommonDenialReasons: append([]DenialReason{}, reasons[payer]...),
		})
	}
	slices.SortStableFunc(body.Results, func(a, b PayerRates) int { return cmp.Compare(b.Submitted, a.Submitted) })
	return body, nil
}

// denialReasons returns the most common denial reasons of each payer.
func (m *builder) denialReasons() (map[string][]DenialReason, error) {
	where, params := m.where("denial_date != ''", "lifecycle_status != 'voided'")
	var rows []struct {
		Payer       string `db:"payer"`
		Code        string `db:"denial_code"`
		Description string `db:"denial_description"`
		Count       int    `db:"n"`
	}
	err := m.app.DB().NewQuery("SELECT payer, denial_code, denial_description, COUNT(*) AS n FROM billing_entries" + m.indexedBy("denials") +
		" WHERE " + where + " GROUP BY 1, 2, 3 ORDER BY payer, n DESC, denial_description").Bind(params).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("count denials: %w", err)
	}
	found := map[string][]DenialReason{}
	for _, row := range rows {
		list := found[row.Payer]
		if i := slices.IndexFunc(list, func(r DenialReason) bool { return r.Code == row.Code }); i >= 0 {
			list[i].Count += row.Count
			continue
		}
		found[row.Payer] = append(list, DenialReason{row.Code, row.Description, row.Count})
	}
	for payer, list := range found {
		slices.SortFunc(list, func(a, b DenialReason) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code)) })
		found[payer] = list[:min(len(list), maxReasons)]
	}
	return found, nil
}
