package reports

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

// StatusCounts counts claims by the states of the API contract.
type StatusCounts struct {
	Pending   int `json:"pending"`
	Submitted int `json:"submitted"`
	Paid      int `json:"paid"`
	Denied    int `json:"denied"`
	Appealed  int `json:"appealed"`
}

func statusCounts(sums []billing.Totals) (c StatusCounts) {
	count := map[string]*int{
		billing.PendingReview: &c.Pending, billing.Reviewed: &c.Pending, billing.Submitted: &c.Submitted, billing.Paid: &c.Paid,
		billing.Denied: &c.Denied, billing.Appealed: &c.Appealed,
	}
	for _, s := range sums {
		if n := count[s.Status]; n != nil {
			*n += s.Claims
		}
	}
	return c
}

// MonthChange is a month of the executive dashboard.
type MonthChange struct {
	Month     string        `json:"month"`
	Revenue   billing.Cents `json:"revenue"`
	Collected billing.Cents `json:"collected"`
	Claims    int           `json:"claims"`
	ChangePct *float64      `json:"change_pct"`
}

// RevenueChange compares a span with the preceding span of equal length.
type RevenueChange struct {
	Total         billing.Cents `json:"total"`
	Collected     billing.Cents `json:"collected"`
	PreviousTotal billing.Cents `json:"previous_total"`
	ChangePct     *float64      `json:"change_pct"`
}

// ExecutiveBody is the executive dashboard.
type ExecutiveBody struct {
	Revenue        RevenueChange `json:"revenue"`
	MonthOverMonth []MonthChange `json:"month_over_month"`
	CollectionRate float64       `json:"collection_rate"`
	ClaimsByStatus StatusCounts  `json:"claims_by_status"`
	ActivePatients int           `json:"active_patients"`
	ComplianceRate float64       `json:"compliance_rate"`
	Reconciled
}

func (m *builder) executive() (any, error) {
	states, err := m.totalsWithMoney(billing.ByMonth)
	if err != nil {
		return nil, err
	}
	reconciled, byMonth := reconcile(states)
	days := billing.DaysBetween(m.q.From, m.q.To) + 1
	before, err := m.totalsBetween(billing.AddDays(m.q.From, -days), billing.AddDays(m.q.From, -1))
	if err != nil {
		return nil, err
	}
	all, previous := addUp(byMonth), addUp(before).Amount
	body := ExecutiveBody{
		Revenue:        RevenueChange{all.Amount, all.Collected, previous, relativeChange(previous, all.Amount, 100, 1)},
		CollectionRate: fraction(all.Collected, all.SubmittedAmount), ClaimsByStatus: statusCounts(byMonth),
		Reconciled: reconciled,
	}
	last := billing.Cents(0)
	for _, s := range m.months(byMonth) {
		body.MonthOverMonth = append(body.MonthOverMonth, MonthChange{s.Month, s.Amount, s.Collected, s.Claims, relativeChange(last, s.Amount, 100, 1)})
		last = s.Amount
	}
	body.ActivePatients, body.ComplianceRate, err = m.compliance()
	return body, err
}

// months adds up totals by month, for every month of the span in order.
func (m *builder) months(sums []billing.Totals) (months []billing.Totals) {
	for _, b := range Buckets(m.q.From, m.q.To, ByMonth) {
		month := addUp(slices.DeleteFunc(slices.Clone(sums), func(s billing.Totals) bool { return s.Month != b.Key }))
		month.Month = b.Key
		months = append(months, month)
	}
	return months
}

// TrendMonth is a month of the monthly trend.
type TrendMonth struct {
	Month      string        `json:"month"`
	Revenue    billing.Cents `json:"revenue"`
	Collected  billing.Cents `json:"collected"`
	Claims     int           `json:"claims"`
	GrowthRate *float64      `json:"growth_rate"`
}

// TrendBody is the monthly trend.
type TrendBody struct {
	Results []TrendMonth `json:"results"`
}

func (m *builder) monthlyTrend() (any, error) {
	sums, err := m.totals(billing.ByMonth)
	if err != nil {
		return nil, err
	}
	body, last := TrendBody{}, billing.Cents(0)
	for _, s := range m.months(sums) {
		body.Results = append(body.Results, TrendMonth{s.Month, s.Amount, s.Collected, s.Claims, relativeChange(last, s.Amount, 1, 4)})
		last = s.Amount
	}
	return body, nil
}

// QuickStatsBody is the quick statistics.
type QuickStatsBody struct {
	TotalRevenue   billing.Cents `json:"total_revenue"`
	ClaimsCount    int           `json:"claims_count"`
	CollectionRate float64       `json:"collection_rate"`
	AsOf           string        `json:"as_of"`
}

func (m *builder) quickStats() (any, error) {
	sums, err := m.totals()
	if err != nil {
		return nil, err
	}
	all := addUp(sums)
	return QuickStatsBody{all.Amount, all.Claims, fraction(all.Collected, all.SubmittedAmount), m.today}, nil
}

// compliance returns the number of active patients and the percentage with enough days with data in the last days of their own zone.
func (m *builder) compliance() (active int, rate float64, err error) {
	var zones []struct {
		Zone  string `db:"time_zone"`
		Count int    `db:"n"`
	}
	const enrolled = "active AND deleted_at = ''"
	err = m.app.DB().NewQuery("SELECT time_zone, COUNT(*) AS n FROM patients WHERE " + enrolled + " GROUP BY time_zone").All(&zones)
	if err != nil {
		return 0, 0, fmt.Errorf("count active patients: %w", err)
	}
	compliant := 0
	for _, z := range zones {
		today := m.today
		if zone := collections.Zone(z.Zone, nil); zone != nil {
			today = m.now.In(zone).Format(time.DateOnly)
		}
		var n int
		err := m.app.DB().NewQuery(`SELECT COUNT(*) FROM patients p WHERE ` + enrolled + ` AND time_zone = {:zone} AND EXISTS (
				SELECT 1 FROM (SELECT DISTINCT day FROM reading_days r WHERE r.patient = p.id AND r.day BETWEEN {:from} AND {:to} AND r.device_readings > 0
					LIMIT 1 OFFSET +{:short}))`).
			Bind(dbx.Params{"zone": z.Zone, "from": billing.AddDays(today, 1-windowDays), "to": today, "short": qualifyingDays - 1}).Row(&n)
		if err != nil {
			return 0, 0, fmt.Errorf("count days with data: %w", err)
		}
		active, compliant = active+z.Count, compliant+n
	}
	return active, ratio(int64(compliant)*100, int64(active), 1), nil
}

// qualifyingDays is how many days with data make a patient compliant within windowDays. Source: docs/decisions/dashboard.md, "KPI details".
const (
	qualifyingDays = 16
	windowDays     = 30
)
