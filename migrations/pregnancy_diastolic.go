package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950360_pregnancy_diastolic.go", lowerPregnancyDiastolic) }

// lowerPregnancyDiastolic sets the low diastolic bound of the templates for pregnancy and for diabetes in pregnancy to that of a new practice's
// defaults, 50, in a folder without patients. No guideline on pregnancy has a low diastolic bound, and the pressure falls in the second trimester;
// a practice at work keeps the bound that its clinicians expect. A template that was changed or signed stays.
func lowerPregnancyDiastolic(app core.App) error {
	return execute(app, `UPDATE threshold_templates SET bounds = json_set(bounds, '$.blood_pressure.diastolic_low', 50),
			sources = CASE WHEN json_valid(sources) THEN json_insert(sources, '$[#]',
				'Maternal early warning criteria, 2014: systolic below 90, no low diastolic bound; 50 is that of adults, a product value') ELSE sources END
		WHERE key IN ('pregnancy', 'gestational_diabetes') AND version = 1 AND updated_by = '' AND signed_off_by = '' AND json_valid(bounds)
			AND bounds ->> '$.blood_pressure.diastolic_low' = 60 AND NOT EXISTS (SELECT 1 FROM patients)`)
}
