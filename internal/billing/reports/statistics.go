package reports

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/billing"
)

// Statistics are the figures of a month. Source: docs/decisions/billing.md, "Statistics definitions".
type Statistics struct {
	Period           string                   `json:"period"`
	TotalRevenue     billing.Cents            `json:"total_revenue"`
	CollectedRevenue billing.Cents            `json:"collected_revenue"`
	TotalClaims      int                      `json:"total_claims"`
	ClaimsByStatus   StatusCounts             `json:"claims_by_status"`
	RevenueByCPT     map[string]billing.Cents `json:"revenue_by_cpt"`
	CollectionRate   float64                  `json:"collection_rate"`
	AvgDaysToPayment float64                  `json:"avg_days_to_payment"`
}

// MonthStatistics returns the statistics of a month.
func (e *Engine) MonthStatistics(app core.App, month billing.Span) (Statistics, error) {
	sums, err := billing.LoadTotals(app, billing.TotalsFilter{From: month.Start, To: month.End}, billing.ByCode, billing.ByStatus)
	all := addUp(sums)
	s := Statistics{
		Period: month.Start[:len("2006-01")], TotalRevenue: all.Amount, CollectedRevenue: all.Collected, TotalClaims: all.Claims,
		ClaimsByStatus: statusCounts(sums), RevenueByCPT: map[string]billing.Cents{}, CollectionRate: fraction(all.Collected, all.SubmittedAmount),
		AvgDaysToPayment: ratio(int64(all.DaysToPayment), int64(all.PaidDatedClaims), 1),
	}
	for _, sum := range sums {
		s.RevenueByCPT[sum.CPTCode] += sum.Amount
	}
	return s, err
}

// BreakdownRow is a period of the breakdown.
type BreakdownRow struct {
	Period         string        `json:"period"`
	Revenue        billing.Cents `json:"revenue"`
	Claims         int           `json:"claims"`
	PatientsBilled int           `json:"patients_billed"`
}

// Breakdown is revenue by period.
type Breakdown struct {
	DateFrom     string         `json:"date_from"`
	DateTo       string         `json:"date_to"`
	TotalRevenue billing.Cents  `json:"total_revenue"`
	Breakdown    []BreakdownRow `json:"breakdown"`
}

// Breakdown splits the revenue of a span into days, weeks or months; "" chooses by the length of the span.
func (e *Engine) Breakdown(app core.App, from, to, group string) (Breakdown, error) {
	if group == "" {
		group = Group(from, to)
	}
	m := &builder{app: app, engine: e.billing, q: Query{From: from, To: to}}
	periods, err := m.periods(group)
	if err != nil {
		return Breakdown{}, err
	}
	patients, err := m.patientsBilled(periods)
	if err != nil {
		return Breakdown{}, err
	}
	body := Breakdown{DateFrom: from, DateTo: to}
	for i, p := range periods {
		body.TotalRevenue += p.Amount
		body.Breakdown = append(body.Breakdown, BreakdownRow{p.Key, p.Amount, p.Claims, patients[i]})
	}
	return body, nil
}

// patientsBilled counts the patients with entries in each period: whole months from stored totals, others from an index.
func (m *builder) patientsBilled(periods []periodTotals) ([]int, error) {
	type window struct {
		First string `json:"a"`
		Last  string `json:"b"`
	}
	counts := make([]int, len(periods))
	var windows []window
	var places []int
	whole, err := billing.PatientsBilled(m.app, m.q.From[:7], m.q.To[:7])
	if err != nil {
		return nil, err
	}
	for i, p := range periods {
		switch {
		case p.whole():
			counts[i] = whole[p.Key]
		case p.Claims > 0:
			windows, places = append(windows, window{p.First, p.Last}), append(places, i)
		}
	}
	list, err := json.Marshal(windows)
	if err != nil || len(windows) == 0 {
		return counts, err
	}
	var rows []struct {
		Place int `db:"k"`
		Count int `db:"n"`
	}
	err = m.app.DB().NewQuery(`SELECT j.key AS k, (SELECT COUNT(DISTINCT patient) FROM billing_entries
			WHERE service_date BETWEEN j.value ->> 'a' AND j.value ->> 'b' AND lifecycle_status != 'voided') AS n FROM json_each({:list}) j`).
		Bind(dbx.Params{"list": string(list)}).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("count billed patients: %w", err)
	}
	for _, row := range rows {
		counts[places[row.Place]] = row.Count
	}
	return counts, nil
}
