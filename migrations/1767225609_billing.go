package migrations

import "github.com/pocketbase/pocketbase/core"

func init() {
	step("1767225609_billing.go", func(app core.App) error {
		if err := payers().save(app); err != nil { // before what relates to it is built
			return err
		}
		return saveAll(app, payerRates(app), icd10Codes(), billingEntries(app), timeEntries(app))
	})
}

func payers() *table {
	return newTable("payers").with(
		&core.TextField{Name: "name", Max: 200, Required: true, Presentable: true},
		requiredText("payer_code", 50, "The payer's own code on claims."),
		flag("is_active", ""),
		instant("created_at", ""),
	).index("code", true, "payer_code COLLATE NOCASE", "")
}

func payerRates(app core.App) *table {
	return newTable("payer_rates").with(
		relation(app, "payer", "payers", true, ""),
		requiredText("cpt_code", 5, ""),
		integer("rate_cents", "US cents."),
		date("effective_date", "In force from this day."),
		instant("created_at", ""),
	).index("rate", true, "payer, cpt_code, effective_date", "")
}

func icd10Codes() *table {
	return newTable("icd10_codes").with(
		&core.TextField{Name: "code", Max: 8, Required: true, Presentable: true},
		requiredText("description", 500, ""),
		text("category", 300, "Chapter block label."),
	).index("code", true, "code", "")
}

func billingEntries(app core.App) *table {
	return newTable("billing_entries").withUUID().with(
		requiredText("claim_id", 30, "CLM-<year>-<number>."),
		relation(app, "patient", "patients", true, ""),
		requiredText("cpt_code", 5, ""),
		date("service_date", ""),
		integer("duration_minutes", ""),
		integer("units", ""),
		integer("amount_cents", "US cents: units times rate, fixed at creation."),
		requiredChoice("lifecycle_status", "", "pending_review", "reviewed", "submitted", "paid", "denied", "appealed", "voided"),
		requiredChoice("source", "", "automatic_device", "automatic_setup", "automatic_time", "escalation", "manual"),
		text("created_by", 254, "E-mail address or system."),
		text("payer", 15, "Empty for self-pay."),
		text("payer_name", 200, ""),
		structured("icd10_codes", "At most 12."),
		relation(app, "rendering_provider", "users", false, ""),
		date("billing_period_start", ""),
		date("billing_period_end", ""),
	).
		optional("transmission_days", "Distinct days with data; device billing only.").
		with(
			structured("evidence", "The facts the entry rests on: days, devices, time entries, set-up."),
			structured("warnings", ""),
			text("reviewed_by", 254, ""),
			instant("reviewed_at", ""),
			flag("attested", "Interactive minutes confirmed by the reviewer."),
			text("submission_reference", 100, ""),
			text("original_reference", 100, ""),
			text("claim_frequency_code", 1, ""),
			instant("submitted_at", ""),
			integer("resubmission_count", ""),
		).
		optional("payment_cents", "US cents.").
		with(
			date("payment_date", ""),
			text("payment_reference", 100, "Check or EFT reference."),
			text("denial_code", 20, "CARC."),
			text("denial_description", 500, ""),
			date("denial_date", ""),
			text("appeal_reference", 100, ""),
			date("appeal_date", ""),
			instant("created_at", ""),
			instant("updated_at", ""),
		).
		phi("notes", 4000, "").
		phi("override_reason", 500, "").
		phi("appeal_reason", 500, "").
		phi("void_reason", 500, "").
		index("claim", true, "claim_id", "").
		// What the engine made exists once per patient, code and period; a voided entry makes room.
		index("automatic", true, "patient, cpt_code, billing_period_start", "source != 'manual' AND lifecycle_status != 'voided'").
		index("service", false, "service_date, id", "").
		index("status", false, "lifecycle_status, service_date", "").
		index("patient", false, "patient, service_date", "").
		index("code", false, "cpt_code, service_date", "").
		index("payer", false, "payer, service_date", "")
}

func timeEntries(app core.App) *table {
	return newTable("time_entries").with(
		relation(app, "patient", "patients", true, ""),
		relation(app, "user", "users", true, ""),
		requiredChoice("category", "Only interactive time feeds 99457 and 99458.", "interactive", "review", "interpretation", "care_management"),
		choice("activity", "", "triage", "phone_call", "video_call", "message", "education", "other"),
		choice("contact_method", "", "phone", "video", "in_person"),
		choice("source", "", "manual", "timer", "escalation"),
		instant("started_at", ""),
		instant("ended_at", "Empty while the timer runs."),
		integer("duration_seconds", ""),
		flag("auto_stopped", "A timer left running stops after an hour."),
		text("escalation", 15, ""),
		text("billing_entry", 36, "Set once billed; the entry is then fixed."),
		instant("created_at", ""),
		instant("updated_at", ""),
	).
		phi("notes", 4000, "").
		index("patient", false, "patient, category, started_at", "").
		index("user", false, "user, started_at", "").
		index("running", true, "user", "ended_at = ''").
		index("escalation", true, "escalation", "escalation != ''")
}
