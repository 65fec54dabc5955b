package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

// StatusRow is what the claims in one state come to.
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

// where is the query as a condition on billing_entries; states are those in question.
func (m *builder) where(conditions ...string) (string, dbx.Params) {
	params := dbx.Params{}
	for _, f := range []struct {
		column, compare string
		value           *string
	}{
		{"service_date", ">=", optional(m.q.From)},
		{"service_date", "<=", optional(m.q.To)},
		{"cpt_code", "=", optional(m.q.CPTCode)},
		{"patient", "=", optional(m.q.PatientID)},
		{"payer", "=", m.q.Payer},
		{"rendering_provider", "=", m.q.Provider},
	} {
		if f.value != nil {
			name := fmt.Sprint("q", len(params))
			conditions = append(conditions, f.column+" "+f.compare+" {:"+name+"}")
			params[name] = *f.value
		}
	}
	return strings.Join(conditions, " AND "), params
}

// indexedBy makes a query use an index that holds all it asks for; SQLite, which counts the
// rows that it reads and not what each costs, would choose a shorter one and look at every entry. The entries of one patient are few.
func (m *builder) indexedBy(index string) string {
	if m.q.PatientID != "" {
		return ""
	}
	return " INDEXED BY idx_billing_entries_" + index
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// oldest is the first service date of claims in a state: at the front of an index, or, where a code or a payer is asked about, in the sums by day.
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

// AgeBucket is what the open claims of an age come to.
type AgeBucket struct {
	Bucket string        `json:"bucket"`
	Claims int           `json:"claims"`
	Amount billing.Cents `json:"amount"`
}

// PayerAge is what a payer has open, and of which age.
type PayerAge struct {
	PayerID *int64        `json:"payer_id"`
	Payer   string        `json:"payer"`
	Claims  int           `json:"claims"`
	Amount  billing.Cents `json:"amount"`
	Buckets []AgeBucket   `json:"buckets"`
}

// AgingBody is the report of open claims by age.
type AgingBody struct {
	AsOf        string        `json:"as_of"`
	TotalAmount billing.Cents `json:"total_amount"`
	Buckets     []AgeBucket   `json:"buckets"`
	ByPayer     []PayerAge    `json:"by_payer"`
}

// ages are the buckets, with how many days old their oldest claims are.
var ages = []struct {
	name string
	most int
}{{"0-30", 30}, {"31-60", 60}, {"61-90", 90}, {"90+", 0}}

// aging counts practice days since the submission. Source: docs/decisions/billing.md, "Report shapes".
func (m *builder) aging() (any, error) {
	where, params := m.where("lifecycle_status IN ('submitted', 'appealed')")
	since := "CASE"
	for i, age := range ages[:len(ages)-1] {
		from, _ := m.engine.Bounds(billing.Span{Start: billing.AddDays(m.today, -age.most), End: m.today})
		since += fmt.Sprintf(" WHEN submitted_at >= {:s%d} THEN %d", i, i)
		params[fmt.Sprint("s", i)] = collections.Instant(from)
	}
	var rows []struct {
		Payer  string        `db:"payer"`
		Bucket int           `db:"bucket"`
		Claims int           `db:"claims"`
		Amount billing.Cents `db:"amount"`
	}
	sql := "SELECT payer, " + since + " ELSE 3 END AS bucket, COUNT(*) AS claims, CAST(SUM(amount_cents) AS INTEGER) AS amount FROM billing_entries" + m.indexedBy("open") +
		" WHERE " + where + " GROUP BY 1, 2"
	if err := m.app.DB().NewQuery(sql).Bind(params).All(&rows); err != nil {
		return nil, fmt.Errorf("sum open claims: %w", err)
	}
	body, byPayer := AgingBody{AsOf: m.today, Buckets: emptyAges(), ByPayer: []PayerAge{}}, map[string]*PayerAge{}
	var sums []billing.Totals
	for _, row := range rows {
		p := byPayer[row.Payer]
		if p == nil {
			p = &PayerAge{PayerID: recordNumber(row.Payer), Buckets: emptyAges()}
			byPayer[row.Payer], sums = p, append(sums, billing.Totals{Payer: row.Payer})
		}
		for _, b := range []*AgeBucket{&body.Buckets[row.Bucket], &p.Buckets[row.Bucket]} {
			b.Claims, b.Amount = b.Claims+row.Claims, b.Amount+row.Amount
		}
		p.Claims, p.Amount, body.TotalAmount = p.Claims+row.Claims, p.Amount+row.Amount, body.TotalAmount+row.Amount
	}
	names, err := m.payers(sums)
	for _, s := range sums {
		byPayer[s.Payer].Payer = names[s.Payer]
		body.ByPayer = append(body.ByPayer, *byPayer[s.Payer])
	}
	slices.SortStableFunc(body.ByPayer, func(a, b PayerAge) int { return cmp.Compare(b.Amount, a.Amount) })
	return body, err
}

func emptyAges() (buckets []AgeBucket) {
	for _, age := range ages {
		buckets = append(buckets, AgeBucket{Bucket: age.name})
	}
	return buckets
}

// UnbilledBody is the report of billable activity that is not claimed.
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
