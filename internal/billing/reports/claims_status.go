package reports

import (
	"fmt"
	"slices"

	"github.com/vigilhealth/vigil/internal/billing"
)

// StatusRow is the totals of the claims in one state.
type StatusRow struct {
	Status            string        `json:"status"`
	LifecycleStatus   string        `json:"lifecycle_status"`
	Claims            int           `json:"claims"`
	Amount            billing.Cents `json:"amount"`
	OldestServiceDate *string       `json:"oldest_service_date"`
}

// ClaimsStatusBody is the report of claims by state.
type ClaimsStatusBody struct {
	TotalClaims int           `json:"total_claims"`
	TotalAmount billing.Cents `json:"total_amount"`
	Results     []StatusRow   `json:"results"`
}

func (m *builder) claimsStatus() (any, error) {
	sums, err := m.totals(billing.ByStatus)
	if err != nil {
		return nil, err
	}
	all := addUp(sums)
	body := ClaimsStatusBody{TotalClaims: all.Claims, TotalAmount: all.Amount}
	for _, state := range billing.StatesForFilter("") {
		if !slices.Contains(billing.ContractStates, state) && !slices.ContainsFunc(sums, func(s billing.Totals) bool { return s.Status == state }) {
			continue
		}
		row := StatusRow{Status: billing.APIStatus(state), LifecycleStatus: state}
		if i := slices.IndexFunc(sums, func(s billing.Totals) bool { return s.Status == state }); i >= 0 {
			row.Claims, row.Amount = sums[i].Claims, sums[i].Amount
			if row.OldestServiceDate, err = m.oldest(state); err != nil {
				return nil, err
			}
		}
		body.Results = append(body.Results, row)
	}
	return body, nil
}

// oldest returns the earliest service date of claims in a state: from an index, or from the daily totals if a code or payer is given.
func (m *builder) oldest(state string) (day *string, err error) {
	where, params := m.where("lifecycle_status = {:state}")
	sql := "SELECT MIN(service_date) FROM billing_entries WHERE " + where
	if (m.q.CPTCode != "" || m.q.Payer != nil) && m.q.PatientID == "" && m.q.Provider == nil {
		sql = "SELECT MIN(service_date) FROM (SELECT day AS service_date, cpt_code, payer, status AS lifecycle_status FROM billing_days WHERE claims > 0) WHERE " + where
	}
	params["state"] = state
	if err := m.app.DB().NewQuery(sql).Bind(params).Row(&day); err != nil {
		return nil, fmt.Errorf("find the oldest claim: %w", err)
	}
	return day, nil
}
