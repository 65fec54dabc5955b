package migrations

import (
	"fmt"
	"strings"

	"github.com/pocketbase/pocketbase/core"
)

// What a practice asks and expects by code, locality and day; every payment, adjustment, refund and what was taken back, each as one row that stays
// as it was written; and sums that hold what was charged and what came of it, so that reports reconcile. Payments of before become rows, too.
func init() {
	step("1767225943_money.go", func(app core.App) error {
		entries, err := app.FindCollectionByNameOrId("billing_entries")
		if err != nil {
			return fmt.Errorf("find billing entries: %w", err)
		}
		err = saveAll(app,
			(&table{Collection: entries}).with(integer("adjusted_cents", "US cents: adjustments of every group but PR.")),
			feeSchedule(), payments())
		if err != nil {
			return err
		}
		return execute(app, append([]string{
			`INSERT INTO payments (id, billing_entry, kind, amount_cents, date, reference, payer, source, source_key, adjustments, reason, created_by, created_at)
				SELECT lower(printf('%s-%s-4%s-8%s-%s', hex(randomblob(4)), hex(randomblob(2)), substr(hex(randomblob(2)), 2), substr(hex(randomblob(2)), 2), hex(randomblob(6)))),
					id, 'payment', CAST(payment_cents AS INTEGER), payment_date, payment_reference, 'primary', 'hand', '', '[]', '', '', updated_at
				FROM billing_entries WHERE payment_date != '' AND payment_cents IS NOT NULL`,
			`CREATE TRIGGER payments_stay BEFORE DELETE ON payments BEGIN SELECT RAISE(ABORT, 'payments are never deleted'); END`,
			// The reason may be sealed anew; nothing else of a payment changes.
			`CREATE TRIGGER payments_stand BEFORE UPDATE ON payments WHEN NEW.billing_entry IS NOT OLD.billing_entry OR NEW.kind IS NOT OLD.kind
				OR NEW.amount_cents IS NOT OLD.amount_cents OR NEW.date IS NOT OLD.date OR NEW.reference IS NOT OLD.reference OR NEW.payer IS NOT OLD.payer
				OR NEW.source IS NOT OLD.source OR NEW.source_key IS NOT OLD.source_key OR NEW.adjustments IS NOT OLD.adjustments
				BEGIN SELECT RAISE(ABORT, 'payments are never changed'); END`,
		}, moneySums()...)...)
	})
}

func feeSchedule() *table {
	return newTable("fee_schedule").with(
		requiredText("cpt_code", 5, ""),
		text("locality", 20, "Of the Medicare fee schedule; empty for the whole nation."),
		date("effective_date", "In force from this day."),
	).
		optional("charge_cents", "US cents: what the practice asks for a unit.").
		optional("expected_cents", "US cents: what is expected for a unit.").
		with(
			text("source", 200, "Where the figures come from."),
			instant("created_at", ""),
			instant("updated_at", ""),
		).index("fee", true, "cpt_code, locality, effective_date", "")
}

func payments() *table {
	return newTable("payments").withUUID().with(
		requiredText("billing_entry", 36, ""),
		requiredChoice("kind", "", "payment", "adjustment", "denial", "reversal", "reopening", "refund"),
		integer("amount_cents", "US cents; less than nothing for what was taken back."),
		date("date", ""),
		text("reference", 100, "Check or EFT."),
		choice("payer", "Who paid.", "primary", "secondary", "patient"),
		requiredChoice("source", "", "hand", "835"),
		text("source_key", 200, "Of the remittance and the line in it, so that it is applied once."),
		structured("adjustments", "As those of the entry; less than nothing for what was taken back."),
		text("created_by", 254, ""),
		instant("created_at", ""),
	).phi("reason", 500, "").
		index("entry", false, "billing_entry, id", "").
		index("source", true, "source_key", "source_key != ''")
}

// moneyColumns are what the sums gain, and from which columns of an entry.
var moneyColumns = [][2]string{
	{"charge_cents", "charge_cents"},
	{"adjusted_cents", "adjusted_cents"},
	{"patient_cents", "patient_responsibility_cents"},
	{"refunded_cents", "refunded_cents"},
}

// moneySums puts the columns on the sums, fills them, and replaces the triggers by those that keep them.
func moneySums() (statements []string) {
	names, values, add := reportSums, reportSumValues, strings.TrimSuffix(addReportSums, ";")
	for _, c := range moneyColumns {
		names += ", " + c[0]
		values += ", $s * CAST($r." + c[1] + " AS INTEGER)"
		add += ", " + c[0] + " = " + c[0] + " + excluded." + c[0]
	}
	add += ";"
	for _, name := range []string{"add", "change", "drop"} {
		statements = append(statements, "DROP TRIGGER report_sums_"+name)
	}
	for _, k := range reportKeys {
		for _, c := range moneyColumns {
			statements = append(statements, "ALTER TABLE "+k.table+" ADD COLUMN "+c[0]+" INTEGER NOT NULL DEFAULT 0")
		}
		text := `INSERT INTO ` + k.table + ` (` + k.columns + `, ` + names + `) SELECT ` + k.values + `, ` + values + ` FROM billing_entries e WHERE TRUE` + add
		statements = append(statements, "DELETE FROM "+k.table, strings.NewReplacer("$r", "e", "$s", "1").Replace(text))
	}
	row := func(name, sign string) (text string) {
		for _, k := range reportKeys {
			text += `INSERT INTO ` + k.table + ` (` + k.columns + `, ` + names + `) VALUES (` + k.values + `, ` + values + `)` + add
		}
		text += `INSERT INTO billing_patient_months (month, patient, claims)
			SELECT substr($r.service_date, 1, 7), $r.patient, $s WHERE $r.lifecycle_status != 'voided'
			ON CONFLICT DO UPDATE SET claims = claims + excluded.claims;`
		return strings.NewReplacer("$r", name, "$s", sign).Replace(text)
	}
	const columns = `patient, service_date, cpt_code, payer, rendering_provider, lifecycle_status, units, amount_cents, payment_cents, payment_date, submitted_at, denial_date,
		charge_cents, adjusted_cents, patient_responsibility_cents, refunded_cents`
	return append(statements,
		`CREATE TRIGGER money_sums_add AFTER INSERT ON billing_entries BEGIN `+row("NEW", "1")+` END`,
		`CREATE TRIGGER money_sums_change AFTER UPDATE OF `+columns+` ON billing_entries BEGIN `+row("OLD", "-1")+row("NEW", "1")+` END`,
		`CREATE TRIGGER money_sums_drop AFTER DELETE ON billing_entries BEGIN `+row("OLD", "-1")+` END`)
}
