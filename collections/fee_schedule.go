package collections

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Fee is the charge and the expected payment for a unit of a code from a day on; nil if not set.
type Fee struct {
	CPTCode       string `db:"cpt_code"`
	Locality      string `db:"locality"` // "" for the whole nation
	EffectiveDate string `db:"effective_date"`
	ChargeCents   *int64 `db:"charge_cents"`
	ExpectedCents *int64 `db:"expected_cents"`
	Source        string `db:"source"`
	UpdatedAt     string `db:"updated_at"`
	Status        string `db:"status"`  // final or proposed
	Shipped       bool   `db:"shipped"` // of the list with which the practice started, until it is imported
}

// The statuses of a fee. A proposed one sets no amount.
const (
	FeeFinal    = "final"
	FeeProposed = "proposed"
)

// Equal reports whether two fees have the same amounts, source and status.
func (f Fee) Equal(other Fee) bool {
	return sameCents(f.ChargeCents, other.ChargeCents) && sameCents(f.ExpectedCents, other.ExpectedCents) && f.Source == other.Source && f.Status == other.Status && f.Shipped == other.Shipped
}

func sameCents(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// ListFees lists all fees by code and locality, latest first.
func ListFees(app core.App) ([]Fee, error) {
	return queryAll[Fee](app, "list fees", `SELECT cpt_code, locality, effective_date, CAST(charge_cents AS INTEGER) AS charge_cents,
		CAST(expected_cents AS INTEGER) AS expected_cents, source, updated_at, iif(status = 'proposed', 'proposed', 'final') AS status, shipped FROM fee_schedule ORDER BY cpt_code, locality, effective_date DESC`, nil)
}

// FeeYears returns, by code, the years from which final expected amounts hold, national or of a locality.
func FeeYears(app core.App, locality string) (map[string][]string, error) {
	rows, err := queryAll[struct {
		Code string `db:"cpt_code"`
		Year string `db:"year"`
	}](app, "list the years of fees", `SELECT DISTINCT cpt_code, substr(effective_date, 1, 4) AS year FROM fee_schedule
		WHERE status != 'proposed' AND expected_cents IS NOT NULL AND locality IN ('', {:locality})`, dbx.Params{"locality": locality})
	years := map[string][]string{}
	for _, row := range rows {
		years[row.Code] = append(years[row.Code], row.Year)
	}
	return years, err
}

// PutFee stores a fee, replacing the one with the same code, locality and day; before is the replaced fee, or nil.
func PutFee(tx core.App, fee Fee, now time.Time) (before *Fee, err error) {
	record, err := tx.FindFirstRecordByFilter(FeeSchedule, "cpt_code = {:code} && locality = {:locality} && effective_date = {:day}",
		dbx.Params{"code": fee.CPTCode, "locality": fee.Locality, "day": fee.EffectiveDate})
	if errors.Is(err, sql.ErrNoRows) {
		record, err = NewRecord(tx, FeeSchedule)
	} else if err == nil {
		before = new(FeeOf(record))
	}
	if err != nil {
		return nil, fmt.Errorf("find fee: %w", err)
	}
	if before != nil && before.Equal(fee) {
		return before, nil
	}
	if before == nil {
		record.Set(ColumnCreatedAt, FormatInstant(now))
	}
	record.Load(map[string]any{
		"cpt_code": fee.CPTCode, "locality": fee.Locality, "effective_date": fee.EffectiveDate, "source": fee.Source, "status": fee.Status, "shipped": fee.Shipped, ColumnUpdatedAt: FormatInstant(now),
	})
	record.Set("charge_cents", optionalCents(fee.ChargeCents))
	record.Set("expected_cents", optionalCents(fee.ExpectedCents))
	return before, wrap(tx.Save(record), "store fee")
}

// FeeOf converts a record of the fee schedule.
func FeeOf(record *core.Record) Fee {
	return Fee{
		CPTCode: record.GetString("cpt_code"), Locality: record.GetString("locality"), EffectiveDate: record.GetString("effective_date"),
		ChargeCents: centsOrNil(record, "charge_cents"), ExpectedCents: centsOrNil(record, "expected_cents"), Source: record.GetString("source"),
		UpdatedAt: record.GetString(ColumnUpdatedAt), Status: cmp.Or(record.GetString("status"), FeeFinal), Shipped: record.GetBool("shipped"),
	}
}

func optionalCents(cents *int64) any {
	if cents == nil {
		return nil
	}
	return float64(*cents)
}

func centsOrNil(record *core.Record, column string) *int64 {
	if v := Optional(record, column); v != nil {
		return new(int64(*v))
	}
	return nil
}
