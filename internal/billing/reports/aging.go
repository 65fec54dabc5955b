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
}

// PayerAge is the open claims of one payer, by age.
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

// ages are the buckets, with the maximum age in days.
var ages = []struct {
	name string
	most int
}{{"0-30", 30}, {"31-60", 60}, {"61-90", 90}, {"90+", 0}}

// aging counts practice days since submission. Source: docs/decisions/billing.md, "Report shapes".
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
