package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Sets of thresholds for kinds of patients, which of them a patient was given, and who is too young for the practice's defaults.
func init() {
	step("1767225936_threshold_templates.go", func(app core.App) error {
		scores, err := app.FindCollectionByNameOrId("triage_scores")
		if err != nil {
			return fmt.Errorf("find triage scores: %w", err)
		}
		thresholds, err := app.FindCollectionByNameOrId("thresholds")
		if err != nil {
			return fmt.Errorf("find thresholds: %w", err)
		}
		err = saveAll(app,
			thresholdTemplates(),
			(&table{Collection: scores}).with(
				choice("age_group", "For a minor the practice's defaults do not hold. Empty until the age was looked at.", "minor", "adult"),
				flag("needs_thresholds", "A minor of whom something is measured without bounds."),
			).index("minors", false, "patient", "age_group != 'adult'"),
			(&table{Collection: thresholds}).with(structured("templates", "The templates that were applied: id, version, at, by.")),
		)
		if err != nil {
			return err
		}
		return seedThresholdTemplates(app)
	})
}

func thresholdTemplates() *table {
	return newTable("threshold_templates").with(
		&core.TextField{Name: "key", Max: 50, Pattern: `^[a-z0-9][a-z0-9_]*$`, Help: "The short name, in lower case; made of the name when empty."},
		&core.TextField{Name: "name", Max: 100, Required: true, Presentable: true},
		structured("diagnoses", `ICD-10-CM codes or what they begin with, e.g. ["I50"].`),
	).
		optional("min_age", "In years; empty for any.").
		optional("max_age", "In years; empty for any.").
		with(
			structured("bounds", `As a patient's, e.g. {"pulse_oximetry":{"low":87}}.`),
			structured("sources", "What the bounds rest on, each with its year."),
			integer("version", "Rises with each change of what is applied."),
			text("signed_off_by", 254, "Who signed this version off, a physician."),
			instant("signed_off_at", ""),
			text("updated_by", 254, "E-mail address."),
			instant("created_at", ""),
			instant("updated_at", ""),
		).
		index("key", true, "key COLLATE NOCASE", "")
}

// seedThresholdTemplates stores the starting values, which nobody has signed off. Why these: docs/decisions/alerts.md, "Templates".
func seedThresholdTemplates(app core.App) error {
	return execute(app, `INSERT INTO threshold_templates (id, key, name, diagnoses, min_age, max_age, bounds, sources, version, created_at, updated_at) VALUES
		('000000000000001', 'adult', 'Adult', '[]', 18, NULL, '{
			"blood_pressure": {"systolic_critical_low": 80, "systolic_low": 90, "systolic_high": 140, "systolic_critical": 180,
				"diastolic_critical_low": 40, "diastolic_low": 60, "diastolic_high": 90, "diastolic_critical": 120},
			"pulse": {"critical_low": 40, "low": 50, "high": 110, "critical": 130},
			"pulse_oximetry": {"critical_low": 88, "low": 92},
			"blood_glucose": {"critical_low": 54, "low": 70, "high": 250, "critical": 300},
			"body_temperature": {"critical_low": 35, "low": 36, "high": 38, "critical": 39.1},
			"weight": {"change_threshold_kg": 2.3, "change_window_days": 7}
		}', '["AHA/ACC high blood pressure guideline, 2025", "Royal College of Physicians, NEWS2, 2017", "ADA Standards of Care in Diabetes, 2025", "CMS NCD 240.2, home use of oxygen, 2021"]',
			1, `+seeded+`, `+seeded+`),
		('000000000000002', 'heart_failure', 'Heart failure', '["I50", "I11.0", "I13.0", "I13.2"]', 18, NULL, '{
			"weight": {"change_threshold_kg": 2, "change_window_days": 7, "critical_change_kg": 4}
		}', '["ESC guidelines for acute and chronic heart failure, 2021: over 2 kg in 3 days", "AHA/ACC/HFSA guideline for the management of heart failure, 2022"]',
			1, `+seeded+`, `+seeded+`),
		('000000000000003', 'copd', 'COPD, target saturation 88 to 92 %', '["J44"]', 18, NULL, '{
			"pulse_oximetry": {"critical_low": 85, "low": 87}
		}', '["BTS guideline for oxygen use in adults, 2017: target 88 to 92 %", "GOLD report, 2025", "Royal College of Physicians, NEWS2, 2017: SpO2 scale 2"]',
			1, `+seeded+`, `+seeded+`),
		('000000000000004', 'pregnancy', 'Pregnancy', '["O09", "O10", "O11", "O12", "O13", "O14", "O15", "O16", "Z33.1", "Z34", "Z3A"]', NULL, NULL, '{
			"blood_pressure": {"systolic_critical_low": 80, "systolic_low": 90, "systolic_high": 140, "systolic_critical": 160,
				"diastolic_critical_low": 40, "diastolic_low": 60, "diastolic_high": 90, "diastolic_critical": 110},
			"pulse": {"critical_low": 40, "low": 50, "high": 120, "critical": 130},
			"pulse_oximetry": {"critical_low": 90, "low": 94}
		}', '["ACOG Practice Bulletin 222, gestational hypertension and preeclampsia, 2020: severe from 160/110", "Maternal early warning criteria, National Partnership for Maternal Safety, 2014: pulse below 50 or above 120, saturation below 95 %"]',
			1, `+seeded+`, `+seeded+`),
		('000000000000005', 'diabetes', 'Diabetes', '["E08", "E09", "E10", "E11", "E13"]', NULL, NULL, '{
			"blood_glucose": {"critical_low": 54, "low": 70, "high": 250, "critical": 300}
		}', '["ADA Standards of Care in Diabetes, 2025: level 1 below 70, level 2 below 54 mg/dL", "ISPAD consensus guidelines, hypoglycemia, 2022: the same for children and adolescents"]',
			1, `+seeded+`, `+seeded+`),
		('000000000000006', 'gestational_diabetes', 'Diabetes in pregnancy', '["O24"]', NULL, NULL, '{
			"blood_glucose": {"critical_low": 54, "low": 63, "high": 140, "critical": 200},
			"blood_pressure": {"systolic_critical_low": 80, "systolic_low": 90, "systolic_high": 140, "systolic_critical": 160,
				"diastolic_critical_low": 40, "diastolic_low": 60, "diastolic_high": 90, "diastolic_critical": 110}
		}', '["ADA Standards of Care in Diabetes, 2025, section 15: 63 to 140 mg/dL, one hour after a meal below 140", "ACOG Practice Bulletin 201, pregestational diabetes, 2018: ketones from 200 mg/dL", "ACOG Practice Bulletin 222, 2020: severe from 160/110"]',
			1, `+seeded+`, `+seeded+`)`,
		`INSERT INTO sequences (name, value) VALUES ('threshold_templates', 6)`)
}

// seeded is when the starting values were made.
const seeded = `'2026-01-01T00:00:00.000000Z'`
