package reports

import (
	"github.com/vigilhealth/vigil/internal/billing"
)

// UnbilledBody is the report of unbilled activity.
type UnbilledBody struct {
	Count                int                `json:"count"`
	TotalEstimatedAmount billing.Cents      `json:"total_estimated_amount"`
	Results              []billing.Unbilled `json:"results"`
}

func (m *builder) unbilled() (any, error) {
	list, err := m.engine.Unbilled(m.app, billing.UnbilledFilter{
		From: m.q.From, To: m.q.To, CPTCode: m.q.CPTCode, PatientID: m.q.PatientID, Payer: m.q.Payer, Provider: m.q.Provider,
	}, m.now)
	body := UnbilledBody{Count: len(list), Results: list}
	for _, u := range list {
		body.TotalEstimatedAmount += u.EstimatedAmount
	}
	return body, err
}
