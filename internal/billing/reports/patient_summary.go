package reports

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/vigilhealth/vigil/internal/billing"
)

// HistoryRow is an entry of a patient's history.
type HistoryRow struct {
	CPTCode     string        `json:"cpt_code" db:"cpt_code"`
	ServiceDate string        `json:"service_date" db:"service_date"`
	Amount      billing.Cents `json:"amount" db:"amount"`
	Status      string        `json:"status" db:"lifecycle_status"`
}

// String formats the entry for a table.
func (r HistoryRow) String() string {
	return strings.Join([]string{r.ServiceDate, r.CPTCode, r.Amount.String(), r.Status}, " ")
}

// PatientRow is the totals of a patient's entries.
type PatientRow struct {
	PatientID       string        `json:"patient_id" db:"patient"`
	PatientName     string        `json:"patient_name"` // set by the route, like the MRN
	MRN             string        `json:"mrn"`
	LifetimeRevenue billing.Cents `json:"lifetime_revenue" db:"amount"`
	Collected       billing.Cents `json:"collected" db:"paid"`
	Claims          int           `json:"claims" db:"claims"`
	LastServiceDate *string       `json:"last_service_date" db:"last"`
	Eligible        bool          `json:"eligible"`
	History         []HistoryRow  `json:"history,omitzero"` // only for a single patient
}

// PatientSummaryBody is a page of patients with entries, in order of enrollment, or the single requested patient.
type PatientSummaryBody struct {
	Count   int          `json:"count"`
	Results []PatientRow `json:"results"`
}

func (m *builder) patientSummary() (any, error) {
	body := PatientSummaryBody{Results: []PatientRow{}}
	var ids []string
	var err error
	if m.q.PatientID != "" {
		body.Count, ids = 1, []string{m.q.PatientID}
	} else if body.Count, ids, err = m.patientsWithEntries(); err != nil || len(ids) == 0 {
		return body, err
	}
	if body.Results, err = m.sumPatients(ids); err != nil {
		return nil, err
	}
	eligible, err := m.engine.EligiblePatients(m.app, ids, m.now)
	for i, row := range body.Results {
		body.Results[i].Eligible = eligible[row.PatientID]
	}
	if m.q.PatientID != "" && err == nil {
		body.Results[0].History, err = m.history()
	}
	return body, err
}

// patientsWithEntries counts the patients and returns those of the page. It jumps from patient to patient in the index, without reading the
// entries between.
func (m *builder) patientsWithEntries() (count int, ids []string, err error) {
	where, params := m.where("b.patient = p.patient", "b.lifecycle_status != 'voided'")
	const patients = `WITH RECURSIVE p(patient) AS (SELECT MIN(patient) FROM billing_entries
		UNION ALL SELECT (SELECT MIN(patient) FROM billing_entries WHERE patient > p.patient) FROM p WHERE p.patient IS NOT NULL)`
	billed := " FROM p WHERE EXISTS (SELECT 1 FROM billing_entries b INDEXED BY idx_billing_entries_walk WHERE " + where + ")"
	params["limit"], params["offset"] = cmp.Or(m.q.Limit, -1), m.q.Offset
	var rows idCounts
	err = m.app.DB().NewQuery(patients + "SELECT patient AS id, COUNT(*) OVER () AS n" + billed + " LIMIT +{:limit} OFFSET +{:offset}").Bind(params).All(&rows)
	if err == nil && len(rows) == 0 && m.q.Offset > 0 { // a page after the last
		err = m.app.DB().NewQuery(patients + "SELECT COUNT(*)" + billed).Bind(params).Row(&count)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("list patients with entries: %w", err)
	}
	for _, row := range rows {
		count, ids = row.Count, append(ids, row.ID)
	}
	return count, ids, nil
}

// sumPatients returns the totals of patients; zeros for one without entries.
func (m *builder) sumPatients(ids []string) (rows []PatientRow, err error) {
	others := *m
	others.q.PatientID = ""
	where, params := others.where("b.patient = j.value", "b.lifecycle_status != 'voided'")
	params["ids"] = jsonList(ids)
	err = m.app.DB().NewQuery(`SELECT j.value AS patient, CAST(COALESCE(SUM(b.amount_cents), 0) AS INTEGER) AS amount,
			CAST(COALESCE(SUM(b.payment_cents), 0) AS INTEGER) AS paid, COUNT(b.patient) AS claims, MAX(b.service_date) AS last
		FROM json_each({:ids}) j LEFT JOIN billing_entries b INDEXED BY idx_billing_entries_patient ON ` + where + ` GROUP BY j.value ORDER BY j.value`).Bind(params).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("sum entries of patients: %w", err)
	}
	return rows, nil
}

func (m *builder) history() (rows []HistoryRow, err error) {
	rows = []HistoryRow{}
	where, params := m.where("lifecycle_status != 'voided'")
	err = m.app.DB().NewQuery("SELECT cpt_code, service_date, CAST(amount_cents AS INTEGER) AS amount, lifecycle_status FROM billing_entries WHERE " + where +
		" ORDER BY service_date DESC, id DESC").Bind(params).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("list entries of a patient: %w", err)
	}
	for i, row := range rows {
		rows[i].Status = billing.APIStatus(row.Status)
	}
	return rows, nil
}
