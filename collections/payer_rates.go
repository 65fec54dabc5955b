package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// PayerRate is what a payer pays for a code from a day on.
type PayerRate struct {
	PayerID       string `db:"payer"`
	PayerName     string `db:"payer_name"`
	CPTCode       string `db:"cpt_code"`
	RateCents     int64  `db:"rate_cents"`
	EffectiveDate string `db:"effective_date"`
}

// RateOf reads a record of the rates, whatever it holds: code, cents and first day.
func RateOf(record *core.Record) (code string, cents float64, effective string) {
	return record.GetString("cpt_code"), record.GetFloat("rate_cents"), record.GetString("effective_date")
}

// ListPayerRates lists every rate by payer, code and day, the latest first.
func ListPayerRates(app core.App) (list []PayerRate, err error) {
	err = app.DB().NewQuery(`SELECT r.payer, COALESCE(p.name, '') AS payer_name, r.cpt_code, r.rate_cents, r.effective_date
		FROM payer_rates r LEFT JOIN payers p ON p.id = r.payer ORDER BY payer_name, r.payer, r.cpt_code, r.effective_date DESC`).All(&list)
	return list, wrap(err, "list payer rates")
}

// AddPayerRate stores a rate; taken when there is one for the payer, code and day.
func AddPayerRate(tx core.App, r PayerRate, now time.Time) (taken bool, err error) {
	err = tx.DB().NewQuery("SELECT EXISTS (SELECT 1 FROM payer_rates WHERE payer = {:payer} AND cpt_code = {:code} AND effective_date = {:day})").
		Bind(dbx.Params{"payer": r.PayerID, "code": r.CPTCode, "day": r.EffectiveDate}).Row(&taken)
	if err != nil || taken {
		return taken, err
	}
	record, err := New(tx, PayerRates)
	if err != nil {
		return false, err
	}
	record.Load(map[string]any{
		"payer": r.PayerID, "cpt_code": r.CPTCode, "rate_cents": r.RateCents, "effective_date": r.EffectiveDate, "created_at": Instant(now),
	})
	if err := tx.Save(record); err != nil {
		return false, fmt.Errorf("store payer rate: %w", err)
	}
	return false, nil
}
