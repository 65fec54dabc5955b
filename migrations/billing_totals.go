package migrations

import "strings"

// totals are the columns of every table of billing totals and how each is computed from an entry. $r stands for the row (NEW or OLD) and $s for
// its sign: 1 adds the row, -1 removes it.
const (
	totalColumns = `claims, units, amount_cents, paid_cents, submitted_claims, submitted_cents, denied_claims, settled_claims, settled_days, ` +
		`charge_cents, adjusted_cents, patient_cents, refunded_cents`
	totalValues = `$s, $s * CAST($r.units AS INTEGER), $s * CAST($r.amount_cents AS INTEGER), $s * CAST(COALESCE($r.payment_cents, 0) AS INTEGER),
		$s * ($r.submitted_at != ''), $s * ($r.submitted_at != '') * CAST($r.amount_cents AS INTEGER), $s * ($r.denial_date != ''),
		$s * ($r.payment_date != '' AND $r.submitted_at != ''),
		$s * CASE WHEN $r.payment_date != '' AND $r.submitted_at != ''
			THEN max(0, CAST(julianday($r.payment_date) - julianday(substr($r.submitted_at, 1, 10)) AS INTEGER)) ELSE 0 END, ` +
		`$s * CAST($r.charge_cents AS INTEGER), $s * CAST($r.adjusted_cents AS INTEGER), $s * CAST($r.patient_responsibility_cents AS INTEGER), ` +
		`$s * CAST($r.refunded_cents AS INTEGER)`
	addTotals = ` ON CONFLICT DO UPDATE SET claims = claims + excluded.claims, units = units + excluded.units,
		amount_cents = amount_cents + excluded.amount_cents, paid_cents = paid_cents + excluded.paid_cents,
		submitted_claims = submitted_claims + excluded.submitted_claims, submitted_cents = submitted_cents + excluded.submitted_cents,
		denied_claims = denied_claims + excluded.denied_claims, settled_claims = settled_claims + excluded.settled_claims,
		settled_days = settled_days + excluded.settled_days, charge_cents = charge_cents + excluded.charge_cents, ` +
		`adjusted_cents = adjusted_cents + excluded.adjusted_cents, patient_cents = patient_cents + excluded.patient_cents, ` +
		`refunded_cents = refunded_cents + excluded.refunded_cents;`
	// countedColumns are the columns of an entry on which the totals depend.
	countedColumns = `patient, service_date, cpt_code, payer, rendering_provider, lifecycle_status, units, amount_cents, payment_cents, payment_date, submitted_at, denial_date,
		charge_cents, adjusted_cents, patient_responsibility_cents, refunded_cents`
)

// totalTables are the tables of billing totals with the columns of their key and how the key is computed from an entry.
var totalTables = []struct{ table, key, values string }{
	{
		"billing_months", "month, cpt_code, payer, provider, status",
		"substr($r.service_date, 1, 7), $r.cpt_code, $r.payer, $r.rendering_provider, $r.lifecycle_status",
	},
	{"billing_days", "day, cpt_code, payer, status", "$r.service_date, $r.cpt_code, $r.payer, $r.lifecycle_status"},
	{"billing_code_months", "month, cpt_code, payer, status", "substr($r.service_date, 1, 7), $r.cpt_code, $r.payer, $r.lifecycle_status"},
	{"billing_provider_days", "day, provider, status", "$r.service_date, $r.rendering_provider, $r.lifecycle_status"},
}

// billingTotalTriggers returns the triggers that keep the totals equal to the entries.
func billingTotalTriggers() []string {
	return []string{
		`CREATE TRIGGER money_sums_add AFTER INSERT ON billing_entries BEGIN ` + addToTotals("NEW", "1") + ` END`,
		`CREATE TRIGGER money_sums_change AFTER UPDATE OF ` + countedColumns + ` ON billing_entries BEGIN ` +
			addToTotals("OLD", "-1") + addToTotals("NEW", "1") + ` END`,
		`CREATE TRIGGER money_sums_drop AFTER DELETE ON billing_entries BEGIN ` + addToTotals("OLD", "-1") + ` END`,
	}
}

// addToTotals returns the statements that add a row, NEW or OLD, to all totals with a sign.
func addToTotals(row, sign string) string {
	var text strings.Builder
	for _, t := range totalTables {
		text.WriteString(`INSERT INTO ` + t.table + ` (` + t.key + `, ` + totalColumns + `) VALUES (` + t.values + `, ` + totalValues + `)` + addTotals)
	}
	text.WriteString(`INSERT INTO billing_patient_months (month, patient, claims)
			SELECT substr($r.service_date, 1, 7), $r.patient, $s WHERE $r.lifecycle_status != 'voided'
			ON CONFLICT DO UPDATE SET claims = claims + excluded.claims;`)
	return strings.NewReplacer("$r", row, "$s", sign).Replace(text.String())
}
