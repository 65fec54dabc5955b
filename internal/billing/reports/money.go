package reports

import (
	"slices"

	"github.com/vigilhealth/vigil/internal/billing"
)

// ratio is n ÷ d rounded half away from zero to a number of decimals; 0 when there is nothing to divide by. It is worked out in whole numbers.
func ratio(n, d int64, decimals int) float64 {
	if d <= 0 {
		return 0
	}
	if n < 0 {
		return -ratio(-n, d, decimals)
	}
	scale := int64(1)
	for range decimals {
		scale *= 10
	}
	return float64((2*n*scale+d)/(2*d)) / float64(scale)
}

// fraction is a fraction with four decimals.
func fraction[T, U ~int | ~int64](n T, d U) float64 { return ratio(int64(n), int64(d), 4) }

// relativeChange is how much now is more than before, as a fraction with four decimals times the factor; nil after nothing.
func relativeChange(before, now billing.Cents, factor int64, decimals int) *float64 {
	if before <= 0 {
		return nil
	}
	return new(ratio(int64(now-before)*factor, int64(before), decimals))
}

// averageOf is an amount for each of some; rounded to the cent.
func averageOf(amount billing.Cents, n int) billing.Cents {
	if n <= 0 {
		return 0
	}
	return (2*amount + billing.Cents(n)) / (2 * billing.Cents(n))
}

// StatusCounts are claims by the states of the contract.
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

// RevenueChange compares a span with the one of as many days before it.
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

// months adds sums up by month: every month of the span, in order.
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
