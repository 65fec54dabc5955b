package migrations

import (
	"strings"

	"github.com/pocketbase/pocketbase/core"
)

// Sums over billing entries, in whole cents, kept by the database in the transaction of each entry, whoever writes it: by month with payer and
// provider, by day, and which patients were billed in a month. Reports read these; a nightly job counts them anew.
func init() {
	step("1767225766_billing_sums.go", func(app core.App) error {
		return execute(app, append([]string{
			`CREATE TABLE billing_months (month TEXT NOT NULL, cpt_code TEXT NOT NULL, payer TEXT NOT NULL, provider TEXT NOT NULL, status TEXT NOT NULL,
				` + sumColumns + `, PRIMARY KEY (month, cpt_code, payer, provider, status)) WITHOUT ROWID`,
			`CREATE TABLE billing_days (day TEXT NOT NULL, cpt_code TEXT NOT NULL, payer TEXT NOT NULL, status TEXT NOT NULL,
				` + sumColumns + `, PRIMARY KEY (day, cpt_code, payer, status)) WITHOUT ROWID`,
			`CREATE TABLE billing_patient_months (month TEXT NOT NULL, patient TEXT NOT NULL, claims INTEGER NOT NULL DEFAULT 0,
				PRIMARY KEY (month, patient)) WITHOUT ROWID`,
			// Set-up is billed once for each patient, for ever; the day of it does not matter.
			`CREATE UNIQUE INDEX idx_billing_entries_setup ON billing_entries (patient)
				WHERE cpt_code = '99453' AND source != 'manual' AND lifecycle_status != 'voided'`,
			`CREATE INDEX idx_billing_entries_supply ON billing_entries (patient, service_date, billing_period_start) WHERE source = 'automatic_device'`,
			`CREATE INDEX idx_time_entries_month ON time_entries (category, started_at, patient, duration_seconds, ended_at)`,
		}, sumTriggers()...)...)
	})
}

const sumColumns = `claims INTEGER NOT NULL DEFAULT 0, units INTEGER NOT NULL DEFAULT 0, amount_cents INTEGER NOT NULL DEFAULT 0,
	paid_cents INTEGER NOT NULL DEFAULT 0, submitted_claims INTEGER NOT NULL DEFAULT 0, submitted_cents INTEGER NOT NULL DEFAULT 0,
	denied_claims INTEGER NOT NULL DEFAULT 0, settled_claims INTEGER NOT NULL DEFAULT 0, settled_days INTEGER NOT NULL DEFAULT 0`

// sumTriggers takes a row out of the sums as it was and puts it in as it is.
func sumTriggers() (statements []string) {
	const columns = `patient, service_date, cpt_code, payer, rendering_provider, lifecycle_status, units, amount_cents, payment_cents, payment_date,
		submitted_at, denial_date`
	for name, trigger := range map[string]struct{ when, in, out string }{
		"add":    {"AFTER INSERT", "NEW", ""},
		"change": {"AFTER UPDATE OF " + columns, "NEW", "OLD"},
		"drop":   {"AFTER DELETE", "", "OLD"},
	} {
		body := ""
		if trigger.out != "" {
			body += sumRow(trigger.out, "-1")
		}
		if trigger.in != "" {
			body += sumRow(trigger.in, "1")
		}
		statements = append(statements, "CREATE TRIGGER billing_sums_"+name+" "+trigger.when+" ON billing_entries BEGIN "+body+" END")
	}
	return statements
}

// sumRow adds a row times a sign to every table of sums.
func sumRow(row, sign string) string {
	values := `$s, $s * CAST($r.units AS INTEGER), $s * CAST($r.amount_cents AS INTEGER), $s * CAST(COALESCE($r.payment_cents, 0) AS INTEGER),
		$s * ($r.submitted_at != ''), $s * ($r.submitted_at != '') * CAST($r.amount_cents AS INTEGER), $s * ($r.denial_date != ''),
		$s * ($r.payment_date != '' AND $r.submitted_at != ''),
		CASE WHEN $r.payment_date != '' AND $r.submitted_at != ''
			THEN $s * max(0, CAST(julianday($r.payment_date) - julianday(substr($r.submitted_at, 1, 10)) AS INTEGER)) ELSE 0 END`
	sums := `claims, units, amount_cents, paid_cents, submitted_claims, submitted_cents, denied_claims, settled_claims, settled_days`
	update := ` ON CONFLICT DO UPDATE SET claims = claims + excluded.claims, units = units + excluded.units,
		amount_cents = amount_cents + excluded.amount_cents, paid_cents = paid_cents + excluded.paid_cents,
		submitted_claims = submitted_claims + excluded.submitted_claims, submitted_cents = submitted_cents + excluded.submitted_cents,
		denied_claims = denied_claims + excluded.denied_claims, settled_claims = settled_claims + excluded.settled_claims,
		settled_days = settled_days + excluded.settled_days;`
	text := `INSERT INTO billing_months (month, cpt_code, payer, provider, status, ` + sums + `)
			VALUES (substr($r.service_date, 1, 7), $r.cpt_code, $r.payer, $r.rendering_provider, $r.lifecycle_status, ` + values + `)` + update + `
		INSERT INTO billing_days (day, cpt_code, payer, status, ` + sums + `)
			VALUES ($r.service_date, $r.cpt_code, $r.payer, $r.lifecycle_status, ` + values + `)` + update + `
		INSERT INTO billing_patient_months (month, patient, claims)
			SELECT substr($r.service_date, 1, 7), $r.patient, $s WHERE $r.lifecycle_status != 'voided'
			ON CONFLICT DO UPDATE SET claims = claims + excluded.claims;`
	return strings.NewReplacer("$r", row, "$s", sign).Replace(text)
}
