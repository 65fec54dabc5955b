package reports

import (
	"cmp"
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

// CodeRevenue is the revenue of a code.
type CodeRevenue struct {
	CPTCode   string        `json:"cpt_code"`
	Claims    int           `json:"claims"`
	Units     int           `json:"units"`
	Revenue   billing.Cents `json:"revenue"`
	Collected billing.Cents `json:"collected"`
}

// PayerRevenue is the revenue from a payer; the id is null for self-pay.
type PayerRevenue struct {
	PayerID   *int64        `json:"payer_id"`
	Payer     string        `json:"payer"`
	Claims    int           `json:"claims"`
	Revenue   billing.Cents `json:"revenue"`
	Collected billing.Cents `json:"collected"`
}

// ProviderRevenue is the revenue of a rendering provider; the id is null for entries without one.
type ProviderRevenue struct {
	ProviderID *int64        `json:"provider_id"`
	Provider   string        `json:"provider"`
	Claims     int           `json:"claims"`
	Revenue    billing.Cents `json:"revenue"`
	Collected  billing.Cents `json:"collected"`
}

// PeriodRevenue is the revenue of a day, week or month.
type PeriodRevenue struct {
	Period    string        `json:"period"`
	Revenue   billing.Cents `json:"revenue"`
	Collected billing.Cents `json:"collected"`
	Claims    int           `json:"claims"`
}

// RevenueBody is the report of revenue.
type RevenueBody struct {
	TotalRevenue     billing.Cents     `json:"total_revenue"`
	CollectedRevenue billing.Cents     `json:"collected_revenue"`
	ByCPT            []CodeRevenue     `json:"by_cpt"`
	ByPayer          []PayerRevenue    `json:"by_payer"`
	ByProvider       []ProviderRevenue `json:"by_provider"`
	ByPeriod         []PeriodRevenue   `json:"by_period"`
	Reconciled
}

func (m *builder) revenue() (any, error) {
	states, err := m.totalsWithMoney(billing.ByCode)
	if err != nil {
		return nil, err
	}
	reconciled, counted := reconcile(states)
	all := addUp(counted)
	body := RevenueBody{
		TotalRevenue: all.Amount, CollectedRevenue: all.Collected, ByCPT: []CodeRevenue{}, ByPayer: []PayerRevenue{}, ByProvider: []ProviderRevenue{},
		Reconciled: reconciled,
	}
	for _, s := range byCode(counted) {
		body.ByCPT = append(body.ByCPT, CodeRevenue{s.CPTCode, s.Claims, s.Units, s.Amount, s.Collected})
	}
	payers, names, err := m.rankedTotals(billing.ByPayer, m.payers)
	if err != nil {
		return nil, err
	}
	for _, s := range payers {
		body.ByPayer = append(body.ByPayer, PayerRevenue{recordNumber(s.Payer), names[s.Payer], s.Claims, s.Amount, s.Collected})
	}
	providers, names, err := m.rankedTotals(billing.ByProvider, m.providers)
	if err != nil {
		return nil, err
	}
	for _, s := range providers {
		body.ByProvider = append(body.ByProvider, ProviderRevenue{recordNumber(s.Provider), names[s.Provider], s.Claims, s.Amount, s.Collected})
	}
	periods, err := m.periods(Group(m.q.From, m.q.To))
	for _, p := range periods {
		body.ByPeriod = append(body.ByPeriod, PeriodRevenue{p.Key, p.Amount, p.Collected, p.Claims})
	}
	return body, err
}

// byAmount orders by amount, highest first.
func byAmount(a, b billing.Totals) int {
	return cmp.Or(cmp.Compare(b.Amount, a.Amount), cmp.Compare(a.Payer, b.Payer), cmp.Compare(a.Provider, b.Provider))
}

// rankedTotals returns the totals by a dimension, highest first, with the names of its values.
func (m *builder) rankedTotals(by billing.Dimension, namesOf func([]billing.Totals) (map[string]string, error)) ([]billing.Totals, map[string]string, error) {
	sums, err := m.totals(by)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(sums, byAmount)
	names, err := namesOf(sums)
	return sums, names, err
}

// recordNumber returns a record id as the API shows it; nil for none.
func recordNumber(recordID string) *int64 {
	if n := collections.Number(recordID); n > 0 {
		return &n
	}
	return nil
}

// selfPay is the name of entries without a payer.
const selfPay = "Self-pay"

// payers returns the names of payers. A deleted payer has the name stored in its entries.
func (m *builder) payers(sums []billing.Totals) (map[string]string, error) {
	list, err := collections.ListPayers(m.app)
	if err != nil {
		return nil, err
	}
	names := map[string]string{"": selfPay}
	for _, p := range list {
		names[p.ID] = p.Name
	}
	for _, s := range sums {
		if _, found := names[s.Payer]; found {
			continue
		}
		if names[s.Payer], err = collections.PayerNameOfEntries(m.app, s.Payer); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func (m *builder) providers(sums []billing.Totals) (map[string]string, error) {
	ids := []string{}
	for _, s := range sums {
		ids = append(ids, s.Provider)
	}
	return billing.ProviderNames(m.app, ids)
}

// Reconciled reconciles charges: billed = paid + adjusted + patient responsibility + open. Voided and refunded entries are excluded and shown
// separately; refunds include all entries. Source: docs/decisions/billing.md, "Reports that reconcile".
type Reconciled struct {
	Billed                billing.Cents `json:"billed"`
	Expected              billing.Cents `json:"expected"`
	Paid                  billing.Cents `json:"paid"`
	Adjusted              billing.Cents `json:"adjusted"`
	PatientResponsibility billing.Cents `json:"patient_responsibility"`
	Refunded              billing.Cents `json:"refunded"`
	Open                  billing.Cents `json:"open"` // negative if payments exceed charges
	// OpenSubmitted is the part of Open of claims that were sent, which the report of aging divides by age.
	OpenSubmitted billing.Cents `json:"open_submitted"`
	Excluded      Excluded      `json:"left_out"`
}

// Excluded is the entries that do not count.
type Excluded struct {
	Voided   ExcludedTotals `json:"voided"`
	Refunded ExcludedTotals `json:"refunded"`
}

// ExcludedTotals is the totals of excluded entries.
type ExcludedTotals struct {
	Claims   int           `json:"claims"`
	Billed   billing.Cents `json:"billed"`
	Paid     billing.Cents `json:"paid"`
	Refunded billing.Cents `json:"refunded"`
}

// totalsWithMoney returns totals by a dimension and by state, with their amounts and with voided entries.
func (m *builder) totalsWithMoney(by billing.Dimension) ([]billing.Totals, error) {
	f := m.filter(m.q.From, m.q.To)
	f.WithMoney = true
	return billing.LoadTotals(m.app, f, by, billing.ByStatus)
}

// reconcile adds up the totals. counted omits voided entries, as the other figures do.
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
			if slices.Contains(sentStates, s.Status) {
				r.OpenSubmitted += s.Billed - s.Collected - s.Adjusted - s.PatientShare
			}
		}
		counted = append(counted, s)
	}
	r.Open = r.Billed - r.Paid - r.Adjusted - r.PatientResponsibility
	return r, counted
}

func (t *ExcludedTotals) add(s billing.Totals) {
	t.Claims += s.Claims
	t.Billed += s.Billed
	t.Paid += s.Collected
	t.Refunded += s.Refunded
}

// byCode adds up the states of each code; totals are in the order of codes.
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
