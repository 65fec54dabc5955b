package reports

import "github.com/vigilhealth/vigil/internal/billing"

// UnbilledRow is activity without an entry.
type UnbilledRow struct {
	PatientID        string        `json:"patient_id"`
	PatientName      string        `json:"patient_name"` // the door's, like the MRN
	MRN              string        `json:"mrn"`
	CPTCode          string        `json:"cpt_code"`
	PeriodStart      string        `json:"period_start"`
	PeriodEnd        string        `json:"period_end"`
	TransmissionDays *int          `json:"transmission_days"`
	Minutes          *int          `json:"minutes"`
	Reason           string        `json:"reason"`
	EstimatedAmount  billing.Cents `json:"estimated_amount"`
}

// UnbilledBody is the report of billable activity that is not claimed.
type UnbilledBody struct {
	Count                int           `json:"count"`
	TotalEstimatedAmount billing.Cents `json:"total_estimated_amount"`
	Results              []UnbilledRow `json:"results"`
}

func (m *maker) unbilled() (any, error) {
	list, err := m.engine.Unbilled(m.app, billing.UnbilledFilter{
		From: m.q.From, To: m.q.To, CPTCode: m.q.CPTCode, PatientID: m.q.PatientID, Payer: m.q.Payer, Provider: m.q.Provider,
	}, m.now)
	body := UnbilledBody{Count: len(list), Results: []UnbilledRow{}}
	for _, u := range list {
		body.TotalEstimatedAmount += u.Amount
		body.Results = append(body.Results, UnbilledRow{
			PatientID: u.PatientID, CPTCode: u.CPTCode, PeriodStart: u.PeriodStart, PeriodEnd: u.PeriodEnd, TransmissionDays: u.Days, Minutes: u.Minutes,
			Reason: u.Reason, EstimatedAmount: u.Amount,
		})
	}
	return body, err
}
