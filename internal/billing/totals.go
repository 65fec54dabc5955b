package billing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Totals are the totals of entries, in whole cents. Month, Day, CPTCode, Payer, Provider and Status are set for the requested dimensions; payer
// and provider are record ids, "" for none; status is the internal one.
type Totals struct {
	Month           string `db:"month"`
	Day             string `db:"day"`
	CPTCode         string `db:"cpt_code"`
	Payer           string `db:"payer"`
	Provider        string `db:"provider"`
	Status          string `db:"status"`
	Claims          int    `db:"claims"`
	Units           int    `db:"units"`
	Amount          Cents  `db:"amount_cents"`
	Collected       Cents  `db:"paid_cents"`
	SubmittedClaims int    `db:"submitted_claims"` // ever
	SubmittedAmount Cents  `db:"submitted_cents"`
	DeniedClaims    int    `db:"denied_claims"`  // ever
	PaidDatedClaims int    `db:"settled_claims"` // with dates of submission and payment
	DaysToPayment   int    `db:"settled_days"`   // from submission to payment, summed

	// Set with [TotalsFilter].WithMoney, which omits the submitted, denied and dated claims.
	Billed       Cents `db:"charge_cents"`
	Adjusted     Cents `db:"adjusted_cents"`
	PatientShare Cents `db:"patient_cents"`
	Refunded     Cents `db:"refunded_cents"`
}

// Dimension is a grouping of totals.
type Dimension string

// The dimensions.
const (
	ByMonth    Dimension = "month"
	ByDay      Dimension = "day"
	ByCode     Dimension = "cpt_code"
	ByPayer    Dimension = "payer"
	ByProvider Dimension = "provider"
	ByStatus   Dimension = "status"
)

// TotalsFilter selects entries that are not voided, by service date (both ends included; "" is open) and other criteria. nil means any; a
// pointer to "" means self-pay, or no provider.
type TotalsFilter struct {
	From, To        string
	CPTCode         string
	Patient         string // the totals are read from the patient's entries
	Payer, Provider *string
	WithMoney       bool // with charges, adjustments and refunds, and with voided entries, which [ByStatus] separates
}

const totalsColumns = `SUM(claims) AS claims, SUM(units) AS units, SUM(amount_cents) AS amount_cents, SUM(paid_cents) AS paid_cents,
	SUM(submitted_claims) AS submitted_claims, SUM(submitted_cents) AS submitted_cents, SUM(denied_claims) AS denied_claims,
	SUM(settled_claims) AS settled_claims, SUM(settled_days) AS settled_days`

// The additional columns of totals with money. Other reports omit them to stay as fast as before.
const (
	totalsWithMoney = `SUM(claims) AS claims, SUM(units) AS units, SUM(amount_cents) AS amount_cents, SUM(paid_cents) AS paid_cents,
	SUM(submitted_cents) AS submitted_cents` + moneyTotals
	columnsWithMoney = `claims, units, amount_cents, paid_cents, submitted_cents` + moneyColumns

	moneyTotals = `, SUM(charge_cents) AS charge_cents, SUM(adjusted_cents) AS adjusted_cents, SUM(patient_cents) AS patient_cents,
	SUM(refunded_cents) AS refunded_cents`
	moneyColumns = `, charge_cents, adjusted_cents, patient_cents, refunded_cents`
	entryMoney   = `, CAST(charge_cents AS INTEGER) AS charge_cents, CAST(adjusted_cents AS INTEGER) AS adjusted_cents,
	CAST(patient_responsibility_cents AS INTEGER) AS patient_cents, CAST(refunded_cents AS INTEGER) AS refunded_cents`
)

// entryTotals computes the totals from the entries; stored totals are checked against it.
const entryTotals = entryKeys + `1 AS claims, CAST(units AS INTEGER) AS units, CAST(amount_cents AS INTEGER) AS amount_cents,
	CAST(COALESCE(payment_cents, 0) AS INTEGER) AS paid_cents, submitted_at != '' AS submitted_claims,
	(submitted_at != '') * CAST(amount_cents AS INTEGER) AS submitted_cents, denial_date != '' AS denied_claims,
	payment_date != '' AND submitted_at != '' AS settled_claims,
	CASE WHEN payment_date != '' AND submitted_at != ''
		THEN max(0, CAST(julianday(payment_date) - julianday(substr(submitted_at, 1, 10)) AS INTEGER)) ELSE 0 END AS settled_days`

// entryKeys are the dimensions of an entry, entryAmounts its first amounts in totals with money.
const (
	entryKeys = `SELECT substr(service_date, 1, 7) AS month, service_date AS day, cpt_code, payer, rendering_provider AS provider, lifecycle_status AS status,
	`
	entryAmounts = `1 AS claims, CAST(units AS INTEGER) AS units, CAST(amount_cents AS INTEGER) AS amount_cents,
	CAST(COALESCE(payment_cents, 0) AS INTEGER) AS paid_cents, (submitted_at != '') * CAST(amount_cents AS INTEGER) AS submitted_cents`
)

// LoadTotals returns the totals of a span by the given dimensions. Whole months are read from the monthly totals, days at the edges from the
// daily totals, or from the entries if a provider is combined with another criterion. It takes milliseconds for any number of entries.
func LoadTotals(app core.App, f TotalsFilter, by ...Dimension) (found []Totals, err error) {
	parts, params := totalsParts(f, by)
	where, sums := "status != 'voided' AND claims != 0", totalsColumns
	if f.WithMoney {
		where, sums = "claims != 0", totalsWithMoney
	}
	for column, value := range map[string]*string{"cpt_code": optionalText(f.CPTCode), "payer": f.Payer, "provider": f.Provider} {
		if value != nil {
			where += " AND " + column + " = {:" + column + "}"
			params[column] = *value
		}
	}
	columns, group := "", ""
	for i, d := range by {
		columns += string(d) + ", "
		if group += string(d); i < len(by)-1 {
			group += ", "
		}
	}
	sql := "SELECT " + columns + sums + " FROM (" + strings.Join(parts, " UNION ALL ") + ") WHERE " + where
	if group != "" {
		sql += " GROUP BY " + group + " ORDER BY " + group
	} else {
		sql += " HAVING COUNT(*) > 0"
	}
	if err := app.DB().NewQuery(sql).Bind(params).All(&found); err != nil {
		return nil, fmt.Errorf("read billing sums: %w", err)
	}
	return found, nil
}

func optionalText(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// totalsParts returns the queries that cover a span.
func totalsParts(f TotalsFilter, by []Dimension) (parts []string, params dbx.Params) {
	from, to := cmp.Or(f.From, "0001-01-01"), cmp.Or(f.To, "9999-12-31")
	params = dbx.Params{}
	months, days := totalsSources(f, by)
	add := func(name, source, column, first, last string) {
		if first <= last && len(first) <= len(time.DateOnly) { // the year after 9999 has a digit more
			params[name+"0"], params[name+"1"] = first, last
			parts = append(parts, source+" WHERE "+column+" BETWEEN {:"+name+"0} AND {:"+name+"1}")
		}
	}
	if f.Patient != "" {
		params["patient"] = f.Patient
		add("d", entriesAsTotals(f), "patient = {:patient} AND service_date", from, to)
		return parts, params
	}
	dayColumn := "day"
	if days == entriesAsTotals(f) {
		dayColumn = "service_date"
	}
	firstMonth, lastMonth := from, to // whole months from the first day of one to the last of another
	if month := monthOf(from); month.Start != from {
		firstMonth = AddDays(month.End, 1)
	}
	if month := monthOf(to); month.End != to {
		lastMonth = AddDays(month.Start, -1)
	}
	if slices.Contains(by, ByDay) || firstMonth > lastMonth {
		add("d", days, dayColumn, from, to)
		return parts, params
	}
	add("a", days, dayColumn, from, AddDays(firstMonth, -1))
	add("m", months, "month", firstMonth[:7], lastMonth[:7])
	add("b", days, dayColumn, AddDays(lastMonth, 1), to)
	return parts, params
}

// totalsSources returns the smallest tables with the requested dimensions.
func totalsSources(f TotalsFilter, by []Dimension) (months, days string) {
	kept := plainColumns
	if f.WithMoney {
		kept = columnsWithMoney
	}
	if !slices.Contains(by, ByProvider) && f.Provider == nil {
		return "SELECT month, '' AS day, cpt_code, payer, '' AS provider, status, " + kept + " FROM billing_code_months",
			"SELECT substr(day, 1, 7) AS month, day, cpt_code, payer, '' AS provider, status, " + kept + " FROM billing_days"
	}
	months = "SELECT month, '' AS day, cpt_code, payer, provider, status, " + kept + " FROM billing_months"
	if f.CPTCode == "" && f.Payer == nil && !slices.Contains(by, ByCode) && !slices.Contains(by, ByPayer) {
		return months, "SELECT substr(day, 1, 7) AS month, day, '' AS cpt_code, '' AS payer, provider, status, " + kept + " FROM billing_provider_days"
	}
	return months, entriesAsTotals(f)
}

// entriesAsTotals reads each entry as totals of one.
func entriesAsTotals(f TotalsFilter) string {
	if f.WithMoney {
		return entryKeys + entryAmounts + entryMoney + " FROM billing_entries"
	}
	return entryTotals + " FROM billing_entries"
}

const plainColumns = `claims, units, amount_cents, paid_cents, submitted_claims, submitted_cents, denied_claims, settled_claims, settled_days`

// PatientsBilled counts the patients with entries in each month of a span, months as YYYY-MM.
func PatientsBilled(app core.App, firstMonth, lastMonth string) (map[string]int, error) {
	var rows []struct {
		Month string `db:"month"`
		Count int    `db:"n"`
	}
	err := app.DB().NewQuery(`SELECT month, COUNT(*) AS n FROM billing_patient_months WHERE claims > 0 AND month BETWEEN {:a} AND {:b} GROUP BY month`).
		Bind(dbx.Params{"a": firstMonth, "b": lastMonth}).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("count billed patients: %w", err)
	}
	counts := map[string]int{}
	for _, row := range rows {
		counts[row.Month] = row.Count
	}
	return counts, nil
}

// totalsTables are the stored totals, with the query that computes them from the entries of a month.
var totalsTables = []struct{ table, keys, counted string }{
	{"billing_months", "month, cpt_code, payer, provider, status", ""},
	{"billing_days", "day, cpt_code, payer, status", ""},
	{"billing_code_months", "month, cpt_code, payer, status", ""},
	{"billing_provider_days", "day, provider, status", ""},
	{"billing_patient_months", "month, patient", `SELECT substr(service_date, 1, 7) AS month, patient, COUNT(*) AS claims FROM billing_entries
		WHERE lifecycle_status != 'voided' AND service_date BETWEEN {:first} AND {:last} GROUP BY 1, 2`},
}

// RecountTotals compares the stored totals with the entries, month by month, and repairs differences. A difference is a bug: the number of
// months with one is returned for the alarm.
func RecountTotals(ctx context.Context, app core.App) (months, wrong int, err error) {
	var first, last string
	err = app.DB().NewQuery(`SELECT COALESCE(MIN(m), ''), COALESCE(MAX(m), '') FROM (SELECT MIN(substr(service_date, 1, 7)) AS m FROM billing_entries
		UNION ALL SELECT MAX(substr(service_date, 1, 7)) FROM billing_entries UNION ALL SELECT MIN(month) FROM billing_months
		UNION ALL SELECT MAX(month) FROM billing_months) WHERE m IS NOT NULL`).Row(&first, &last)
	if err != nil {
		return 0, 0, fmt.Errorf("find the months of billing: %w", err)
	}
	for month, ok := MonthSpan(first); ok && month.Start[:7] <= last; month, ok = MonthSpan(AddDays(month.End, 1)[:7]) {
		if err := ctx.Err(); err != nil {
			return months, wrong, err
		}
		differs, err := recountMonthTotals(app, month)
		if err != nil {
			return months, wrong, err
		}
		months++
		if differs {
			wrong++
		}
	}
	return months, wrong, nil
}

// recountMonthTotals compares outside any transaction, so that a correct count blocks no writer: one statement reads entries and totals in the
// same snapshot.
func recountMonthTotals(app core.App, month Span) (differs bool, err error) {
	params := dbx.Params{"month": month.Start[:7], "first": month.Start, "last": month.End}
	for _, t := range totalsTables {
		where, columns, counted := "month = {:month}", t.keys+", "+plainColumns+moneyColumns, t.counted
		if strings.HasPrefix(t.keys, "day,") {
			where = "day BETWEEN {:first} AND {:last}"
		}
		if counted == "" {
			counted = "SELECT " + t.keys + ", " + totalsColumns + moneyTotals + " FROM (" + entryTotals + entryMoney + " FROM billing_entries WHERE service_date BETWEEN {:first} AND {:last}) GROUP BY " + t.keys
		} else {
			columns = t.keys + ", claims"
		}
		var wrong bool
		err := app.DB().NewQuery("WITH counted AS MATERIALIZED (" + counted + "), kept AS MATERIALIZED (SELECT " + columns + " FROM " + t.table +
			" WHERE claims != 0 AND " + where + `)
			SELECT EXISTS (SELECT * FROM counted EXCEPT SELECT * FROM kept) OR EXISTS (SELECT * FROM kept EXCEPT SELECT * FROM counted)`).
			Bind(params).Row(&wrong)
		if err != nil {
			return false, fmt.Errorf("compare %s: %w", t.table, err)
		}
		if !wrong {
			continue
		}
		differs = true
		err = app.RunInTransaction(func(tx core.App) error {
			for _, statement := range []string{"DELETE FROM " + t.table + " WHERE " + where, "INSERT INTO " + t.table + " (" + columns + ") " + counted} {
				if _, err := tx.NonconcurrentDB().NewQuery(statement).Bind(params).Execute(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return false, fmt.Errorf("recount %s: %w", t.table, err)
		}
	}
	return differs, nil
}
