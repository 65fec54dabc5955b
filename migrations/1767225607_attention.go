package migrations

import "github.com/pocketbase/pocketbase/core"

func init() {
	step("1767225607_attention.go", func(app core.App) error {
		if err := saveAll(app, thresholds(app), thresholdChanges(), alerts(app), escalations(app), triageScores(app)); err != nil {
			return err
		}
		return seedDefaultThresholds(app)
	})
}

// thresholds holds one row per patient with bounds of its own, and one row without a patient: the practice's
// defaults. A bound that is left out is inherited, null removes it, and a group that is null raises no alerts.
func thresholds(app core.App) *table {
	return newTable("thresholds").with(
		relation(app, "patient", "patients", false, "Empty for the practice's defaults."),
		structured("bounds", `Groups blood_pressure, pulse, pulse_oximetry, blood_glucose, weight, e.g. {"blood_pressure":{"systolic_high":135}}.`),
		instant("updated_at", ""),
		text("updated_by", 254, "E-mail address."),
	).index("patient", true, "patient", "")
}

func thresholdChanges() *table {
	return newTable("threshold_changes").with(
		text("patient", 36, "Empty for the practice's defaults."),
		requiredText("changed_by", 254, "E-mail address."),
		instant("changed_at", ""),
		requiredText("field", 50, ""),
	).
		optional("old_value", "The value in force before.").
		optional("new_value", "").
		phi("reason", 500, "").
		index("patient", false, "patient, changed_at", "").
		index("changed", false, "changed_at", "")
}

func alerts(app core.App) *table {
	return newTable("alerts").with(
		relation(app, "patient", "patients", true, ""),
		requiredChoice("level", "", "critical", "warning", "normal", "no_data"),
		requiredText("type", 30, "blood_pressure, pulse, weight, pulse_oximetry, blood_glucose, missed_reading …"),
		text("observation", 36, ""),
		text("parameter", 30, "The worst parameter of the reading."),
	).
		phi("message", 500, "").
		optional("value", "Of the worst parameter.").
		optional("threshold", "The bound met.").
		with(
			requiredChoice("status", "", "active", "acknowledged", "resolved", "auto_resolved"),
			flag("acknowledged", "True once a person or later readings have dealt with it."),
			text("acknowledged_by", 254, "E-mail address or system."),
			instant("acknowledged_at", ""),
			text("resolved_by", 254, "E-mail address or system."),
			instant("resolved_at", ""),
			text("outcome", 50, ""),
			flag("follow_up_required", ""),
			instant("follow_up_at", ""),
			integer("normal_readings", "Consecutive later readings that breach nothing."),
			text("device_id", 128, ""),
			text("escalation", 15, "The escalation it is attached to."),
			instant("measured_at", "Of the reading behind it."),
			instant("created_at", ""),
			instant("updated_at", ""),
		).
		phi("notes", 5000, "").
		phi("clinical_note", 5000, "").
		index("patient", false, "patient, created_at", "").
		index("created", false, "created_at, id", "").
		index("open", false, "patient, level, created_at", "acknowledged = FALSE").
		index("level", false, "level, created_at", "").
		index("observation", false, "observation", "observation != ''").
		index("device", false, "device_id, type", "device_id != ''")
}

func escalations(app core.App) *table {
	return newTable("escalations").with(
		relation(app, "patient", "patients", true, ""),
		requiredChoice("priority", "", "routine", "urgent", "stat"),
		requiredChoice("status", "", "open", "in_progress", "resolved", "cancelled"),
		requiredText("created_by", 254, "E-mail address or system."),
		text("assigned_to", 254, "E-mail address."),
		instant("assigned_at", ""),
		text("alert", 15, "The alert that raised it."),
		text("resolved_by", 254, ""),
		instant("resolved_at", ""),
		text("cancelled_by", 254, ""),
		instant("cancelled_at", ""),
		text("related_escalation", 15, "The earlier one it corrects."),
		instant("notified_at", "Last time people were told."),
	).
		optional("interaction_minutes", "Attested minutes of live contact.").
		phi("reason", 2000, "").
		phi("resolution_notes", 4000, "").
		with(instant("created_at", ""), instant("updated_at", "")).
		index("patient", false, "patient, created_at", "").
		index("created", false, "created_at, id", "").
		index("status", false, "status, priority, created_at", "").
		index("assigned", false, "assigned_to, status", "assigned_to != ''").
		// One open escalation by the system and patient: later critical alerts are attached to it.
		index("system", true, "patient", "created_by = 'system' AND status IN ('open', 'in_progress')")
}

// triageScores is one row per patient: the stored score and what the triage list shows and sorts by.
func triageScores(app core.App) *table {
	return newTable("triage_scores").with(
		relation(app, "patient", "patients", true, ""),
		flag("listed", "False once the patient is archived or deleted."),
		integer("risk_score", "0 to 100."),
		requiredChoice("risk_level", "", "critical", "warning", "normal", "no_data"),
		structured("risk_factors", "What the score is made of."),
		structured("latest_vitals", "The latest reading of each kind."),
		integer("unacknowledged_alerts", ""),
		integer("unacknowledged_critical", ""),
		instant("oldest_unacknowledged_at", ""),
		integer("active_escalations", "Open and in progress."),
		flag("needs_review", ""),
		instant("last_reading_at", ""),
		instant("last_reviewed_at", ""),
		text("last_reviewed_by", 254, "E-mail address."),
		instant("enrolled_at", "Creation of the patient; the start of the time since last review."),
		instant("scored_at", ""),
	).
		index("patient", true, "patient", "").
		index("severity", false, "listed, risk_score DESC, unacknowledged_critical DESC, oldest_unacknowledged_at, last_reviewed_at, patient", "").
		index("level", false, "listed, risk_level, risk_score DESC", "").
		index("last_reading", false, "listed, last_reading_at, patient", "").
		index("unacknowledged", false, "listed, risk_score DESC", "unacknowledged_alerts > 0").
		index("review", false, "listed, risk_score DESC", "needs_review = TRUE")
}

// seedDefaultThresholds stores the practice's starting values, to be signed off by its medical director.
func seedDefaultThresholds(app core.App) error {
	return execute(app, `INSERT INTO thresholds (id, patient, bounds, updated_at, updated_by) VALUES ('practicedefault', '', '{
		"blood_pressure": {"systolic_critical_low": 80, "systolic_low": 90, "systolic_high": 140, "systolic_critical": 180,
			"diastolic_critical_low": 40, "diastolic_low": 60, "diastolic_high": 90, "diastolic_critical": 120},
		"pulse": {"critical_low": 40, "low": 50, "high": 110, "critical": 130},
		"pulse_oximetry": {"critical_low": 88, "low": 92},
		"blood_glucose": {"critical_low": 54, "low": 70, "high": 250, "critical": 300},
		"weight": {"change_threshold_kg": 2.3, "change_window_days": 7}
	}', '', '')`)
}
