package migrations

import (
	"strings"

	"github.com/pocketbase/pocketbase/core"
)

// What reports ask beside the first sums: months without providers, which are few rows; days of providers; and indexes that hold everything a
// count of patients, of denials, of open claims or of waiting work looks at. The triggers of the first sums are replaced by these: they added the
// days until payment where they should have taken them away. All sums are counted anew.
func init() {
	step("1767225785_report_sums.go", func(app core.App) error {
		return execute(app, append([]string{
			`CREATE TABLE billing_code_months (month TEXT NOT NULL, cpt_code TEXT NOT NULL, payer TEXT NOT NULL, status TEXT NOT NULL,
				` + sumColumns + `, PRIMARY KEY (month, cpt_code, payer, status)) WITHOUT ROWID`,
			`CREATE TABLE billing_provider_days (day TEXT NOT NULL, provider TEXT NOT NULL, status TEXT NOT NULL,
				` + sumColumns + `, PRIMARY KEY (day, provider, status)) WITHOUT ROWID`,
			`CREATE INDEX idx_billing_entries_provider ON billing_entries (rendering_provider, service_date, patient, lifecycle_status)`,
			`CREATE INDEX idx_billing_entries_billed ON billing_entries (service_date, patient, rendering_provider, lifecycle_status)
				WHERE lifecycle_status != 'voided'`,
			`CREATE INDEX idx_billing_entries_denials ON billing_entries (service_date, payer, denial_code, denial_description, cpt_code, rendering_provider,
				denial_date, lifecycle_status) WHERE denial_date != '' AND lifecycle_status != 'voided'`,
			`CREATE INDEX idx_billing_entries_open ON billing_entries (submitted_at, payer, amount_cents, service_date, cpt_code, rendering_provider,
				lifecycle_status) WHERE lifecycle_status IN ('submitted', 'appealed')`,
			`CREATE INDEX idx_billing_entries_waiting ON billing_entries (lifecycle_status, ` + waitingSince + `)
				WHERE lifecycle_status IN ('pending_review', 'reviewed', 'denied')`,
			`CREATE INDEX idx_billing_entries_attest ON billing_entries (service_date)
				WHERE lifecycle_status = 'pending_review' AND instr(warnings, 'attest_interaction') > 0`,
		}, append(fillReportSums(), reportTriggers()...)...)...)
	})
}

const (
	waitingSince    = `(CASE lifecycle_status WHEN 'pending_review' THEN created_at WHEN 'reviewed' THEN reviewed_at ELSE denial_date END)`
	reportSums      = `claims, units, amount_cents, paid_cents, submitted_claims, submitted_cents, denied_claims, settled_claims, settled_days`
	reportSumValues = `$s, $s * CAST($r.units AS INTEGER), $s * CAST($r.amount_cents AS INTEGER), $s * CAST(COALESCE($r.payment_cents, 0) AS INTEGER),
		$s * ($r.submitted_at != ''), $s * ($r.submitted_at != '') * CAST($r.amount_cents AS INTEGER), $s * ($r.denial_date != ''),
		$s * ($r.payment_date != '' AND $r.submitted_at != ''),
		$s * CASE WHEN $r.payment_date != '' AND $r.submitted_at != ''
			THEN max(0, CAST(julianday($r.payment_date) - julianday(substr($r.submitted_at, 1, 10)) AS INTEGER)) ELSE 0 END`
	addReportSums = ` ON CONFLICT DO UPDATE SET claims = claims + excluded.claims, units = units + excluded.units,
		amount_cents = amount_cents + excluded.amount_cents, paid_cents = paid_cents + excluded.paid_cents,
		submitted_claims = submitted_claims + excluded.submitted_claims, submitted_cents = submitted_cents + excluded.submitted_cents,
		denied_claims = denied_claims + excluded.denied_claims, settled_claims = settled_claims + excluded.settled_claims,
		settled_days = settled_days + excluded.settled_days;`
)

// reportKeys are the tables and what each keeps apart.
var reportKeys = []struct{ table, columns, values string }{
	{
		"billing_months", "month, cpt_code, payer, provider, status",
		"substr($r.service_date, 1, 7), $r.cpt_code, $r.payer, $r.rendering_provider, $r.lifecycle_status",
	},
	{"billing_days", "day, cpt_code, payer, status", "$r.service_date, $r.cpt_code, $r.payer, $r.lifecycle_status"},
	{"billing_code_months", "month, cpt_code, payer, status", "substr($r.service_date, 1, 7), $r.cpt_code, $r.payer, $r.lifecycle_status"},
	{"billing_provider_days", "day, provider, status", "$r.service_date, $r.rendering_provider, $r.lifecycle_status"},
}

// fillReportSums ends the old triggers and sums what is there already.
func fillReportSums() (statements []string) {
	for _, name := range []string{"add", "change", "drop"} {
		statements = append(statements, "DROP TRIGGER billing_sums_"+name)
	}
	for _, k := range reportKeys {
		text := `INSERT INTO ` + k.table + ` (` + k.columns + `, ` + reportSums + `) SELECT ` + k.values + `, ` + reportSumValues + ` FROM billing_entries e WHERE TRUE` + addReportSums
		statements = append(statements, "DELETE FROM "+k.table, strings.NewReplacer("$r", "e", "$s", "1").Replace(text))
	}
	return statements
}

// reportTriggers take a row out of the sums as it was and put it in as it is, whoever writes it.
func reportTriggers() (statements []string) {
	row := func(name, sign string) (text string) {
		for _, k := range reportKeys {
			text += `INSERT INTO ` + k.table + ` (` + k.columns + `, ` + reportSums + `) VALUES (` + k.values + `, ` + reportSumValues + `)` + addReportSums
		}
		text += `INSERT INTO billing_patient_months (month, patient, claims)
			SELECT substr($r.service_date, 1, 7), $r.patient, $s WHERE $r.lifecycle_status != 'voided'
			ON CONFLICT DO UPDATE SET claims = claims + excluded.claims;`
		return strings.NewReplacer("$r", name, "$s", sign).Replace(text)
	}
	const columns = `patient, service_date, cpt_code, payer, rendering_provider, lifecycle_status, units, amount_cents, payment_cents, payment_date, submitted_at, denial_date`
	return []string{
		`CREATE TRIGGER report_sums_add AFTER INSERT ON billing_entries BEGIN ` + row("NEW", "1") + ` END`,
		`CREATE TRIGGER report_sums_change AFTER UPDATE OF ` + columns + `
			ON billing_entries BEGIN ` + row("OLD", "-1") + row("NEW", "1") + ` END`,
		`CREATE TRIGGER report_sums_drop AFTER DELETE ON billing_entries BEGIN ` + row("OLD", "-1") + ` END`,
	}
}
