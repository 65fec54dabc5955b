package reports

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

// AgeBucket is the open claims of one age range.
type AgeBucket struct {
	Bucket string        `json:"bucket"`
	Claims int           `json:"claims"`
	Amount billing.Cents `json:"amount"`
	// Open is the open amount of all sent claims, including paid ones.
	Open billing.Cents `json:"open"`
}

// PayerAge is the open claims of one payer, by age.
type PayerAge struct {
	PayerID *int64        `json:"payer_id"`
	Payer   string        `json:"payer"`
	Claims  int           `json:"claims"`
	Amount  billing.Cents `json:"amount"`
	Open    billing.Cents `json:"open"`
	Buckets []AgeBucket   `json:"buckets"`
}

// AgingBody is the report of open claims by age.
type AgingBody struct {
	AsOf        string        `json:"as_of"`
	TotalAmount billing.Cents `json:"total_amount"`
	TotalOpen   billing.Cents `json:"total_open"` // the sum of the buckets
	Buckets     []AgeBucket   `json:"buckets"`
	ByPayer     []PayerAge    `json:"by_payer"`
}

// ages are the buckets, with the maximum age in days.
var ages = []struct {
	name string
	most int
}{{"0-30", 30}, {"31-60", 60}, {"61-90", 90}, {"90+", 0}}

// sentStates are the states of claims that were sent and count: their open amounts are total_open of aging and open_submitted of revenue. A
// rejected claim is reviewed again, and not among them.
var sentStates = []string{billing.Submitted, billing.Paid, billing.Denied, billing.Appealed, billing.VoidRequested, billing.RefundDue}

// openCondition selects claims that were sent, and have an open amount or a credit, in the words of their index.
const openCondition = `lifecycle_status IN ('submitted', 'paid', 'denied', 'appealed', 'void_requested', 'refund_due')
	AND charge_cents != paid_total_cents + adjusted_cents + patient_responsibility_cents`

// agedRow is a sum of one payer's claims of an age.
type agedRow struct {
	Payer  string        `db:"payer"`
	Bucket int           `db:"bucket"`
	Claims int           `db:"claims"`
	Amount billing.Cents `db:"amount"`
	Open   billing.Cents `db:"open"`
}

// agedRows sums what a condition selects by payer and age, which are practice days since submission.
func (m *builder) agedRows(condition, index, sums string) (rows []agedRow, err error) {
	where, params := m.where(condition)
	since := "CASE"
	for i, age := range ages[:len(ages)-1] {
		from, _ := m.engine.TimeRange(billing.Span{Start: billing.AddDays(m.today, -age.most), End: m.today})
		since += fmt.Sprintf(" WHEN submitted_at >= {:s%d} THEN %d", i, i)
		params[fmt.Sprint("s", i)] = collections.FormatInstant(from)
	}
	sql := "SELECT payer, " + since + " ELSE 3 END AS bucket, " + sums + " FROM billing_entries" + m.indexedBy(index) + " WHERE " + where + " GROUP BY 1, 2"
	if err := m.app.DB().NewQuery(sql).Bind(params).All(&rows); err != nil {
		return nil, fmt.Errorf("sum open claims: %w", err)
	}
	return rows, nil
}

// aging has the expected amount of claims that wait for a payer, and what is open of all claims that were sent. Source: docs/decisions/billing.md,
// "Report shapes".
func (m *builder) aging() (any, error) {
	rows, err := m.agedRows("lifecycle_status IN ('submitted', 'appealed')", "open", "COUNT(*) AS claims, CAST(SUM(amount_cents) AS INTEGER) AS amount, 0 AS open")
	if err != nil {
		return nil, err
	}
	balances, err := m.agedRows(openCondition, "balance",
		"0 AS claims, 0 AS amount, CAST(SUM(charge_cents - paid_total_cents - adjusted_cents - patient_responsibility_cents) AS INTEGER) AS open")
	if err != nil {
		return nil, err
	}
	rows = append(rows, balances...)
	body, byPayer := AgingBody{AsOf: m.today, Buckets: emptyAges(), ByPayer: []PayerAge{}}, map[string]*PayerAge{}
	var sums []billing.Totals
	for _, row := range rows {
		p := byPayer[row.Payer]
		if p == nil {
			p = &PayerAge{PayerID: recordNumber(row.Payer), Buckets: emptyAges()}
			byPayer[row.Payer], sums = p, append(sums, billing.Totals{Payer: row.Payer})
		}
		for _, b := range []*AgeBucket{&body.Buckets[row.Bucket], &p.Buckets[row.Bucket]} {
			b.Claims, b.Amount, b.Open = b.Claims+row.Claims, b.Amount+row.Amount, b.Open+row.Open
		}
		p.Open, body.TotalOpen = p.Open+row.Open, body.TotalOpen+row.Open
		p.Claims, p.Amount, body.TotalAmount = p.Claims+row.Claims, p.Amount+row.Amount, body.TotalAmount+row.Amount
	}
	names, err := m.payers(sums)
	for _, s := range sums {
		byPayer[s.Payer].Payer = names[s.Payer]
		body.ByPayer = append(body.ByPayer, *byPayer[s.Payer])
	}
	slices.SortStableFunc(body.ByPayer, func(a, b PayerAge) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), cmp.Compare(b.Open, a.Open), cmp.Compare(a.Payer, b.Payer))
	})
	return body, err
}

func emptyAges() (buckets []AgeBucket) {
	for _, age := range ages {
		buckets = append(buckets, AgeBucket{Bucket: age.name})
	}
	return buckets
}
