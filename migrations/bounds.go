package migrations

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795939200_bounds.go", addBounds) }

// addBounds adds the template for COPD on home oxygen, and the bound of fasting glucose to the template for diabetes in pregnancy.
func addBounds(app core.App) error {
	if err := addTemplate(app, newTemplate{
		key: "copd_oxygen", name: "COPD on home oxygen, target saturation 88 to 92 %", diagnoses: `["J44+Z99.81"]`, minAge: 18,
		bounds: `{"pulse_oximetry": {"critical_low": 85, "low": 87, "high": 96}}`,
		sources: `["BTS guideline for oxygen use in adults, 2017: target 88 to 92 %", "GOLD report, 2025", ` +
			`"Royal College of Physicians, NEWS2, 2017: SpO2 scale 2, 95 to 96 on oxygen scores 2, from 97 3"]`,
	}); err != nil {
		return err
	}
	return addToTemplate(app, "gestational_diabetes", shippedBounds{
		group: "blood_glucose", fields: map[string]float64{"critical_low": 54, "low": 63, "high": 140, "critical": 200},
		added:  map[string]float64{"fasting_high": 95},
		source: "ADA Standards of Care in Diabetes, section 15, and ACOG Practice Bulletin 190, 2018: fasting below 95 mg/dL",
	})
}

// newTemplate is a template that a migration ships.
type newTemplate struct {
	key, name, diagnoses, bounds, sources string
	minAge                                int // 0 for none
}

// addTemplate stores a template under the next number, unless the practice has one with this key.
func addTemplate(app core.App, t newTemplate) error {
	var taken bool
	err := app.DB().NewQuery("SELECT EXISTS (SELECT 1 FROM threshold_templates WHERE key = {:key} COLLATE NOCASE)").
		Bind(dbx.Params{"key": t.key}).Row(&taken)
	if err != nil || taken {
		return err
	}
	if err := execute(app, `INSERT INTO sequences (name, value) VALUES ('threshold_templates', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1`); err != nil {
		return err
	}
	_, err = app.DB().NewQuery(`INSERT INTO threshold_templates
			(bounds, created_at, diagnoses, id, key, max_age, min_age, name, signed_off_at, signed_off_by, sources, updated_at, updated_by, version)
		SELECT {:bounds}, '2026-11-29T00:00:00.000000Z', {:diagnoses}, printf('%015d', value), {:key}, NULL, NULLIF({:age}, 0), {:name}, '', '', {:sources},
			'2026-11-29T00:00:00.000000Z', '', 1 FROM sequences WHERE name = 'threshold_templates'`).
		Bind(dbx.Params{"bounds": t.bounds, "diagnoses": t.diagnoses, "key": t.key, "age": t.minAge, "name": t.name, "sources": t.sources}).Execute()
	if err != nil {
		return fmt.Errorf("add the template %s: %w", t.key, err)
	}
	return nil
}

// shippedBounds are the bounds of a group as an earlier version shipped them, and those that this version adds.
type shippedBounds struct {
	group         string
	fields, added map[string]float64
	source        string
}

// addToTemplate adds bounds to a template, as a new version if it was applied to a patient. A template with a sign-off stays as the physician
// signed it, and so does a group with bounds that the practice changed, or a template that it deleted: a migration never decides against a
// clinic's own choice.
func addToTemplate(app core.App, key string, s shippedBounds) error {
	var id, text, list, signed string
	query := app.DB().NewQuery(`SELECT id, COALESCE(bounds, ''), COALESCE(sources, ''), signed_off_by || signed_off_at FROM threshold_templates WHERE key = {:key}
		UNION ALL SELECT '', '', '', '' LIMIT 1`)
	if err := query.Bind(dbx.Params{"key": key}).Row(&id, &text, &list, &signed); err != nil {
		return fmt.Errorf("read the template %s: %w", key, err)
	}
	var bounds map[string]map[string]*float64
	var sources []string
	if id == "" || signed != "" || !isJSON(text, &bounds) || !maps.EqualFunc(bounds[s.group], s.fields, isBound) {
		return nil
	}
	if !isJSON(list, &sources) {
		sources = nil
	}
	for field, value := range s.added {
		bounds[s.group][field] = &value
	}
	changed, err := json.Marshal(bounds)
	if err != nil {
		return err
	}
	if !slices.Contains(sources, s.source) {
		sources = append(sources, s.source)
	}
	named, err := json.Marshal(sources)
	if err != nil {
		return err
	}
	_, err = app.DB().NewQuery(`UPDATE threshold_templates SET bounds = {:bounds}, sources = {:sources},
			version = version + EXISTS (SELECT 1 FROM thresholds h, json_each(h.templates) a
				WHERE json_valid(h.templates) AND h.templates != 'null' AND a.value ->> 'key' = {:key})
		WHERE id = {:id}`).
		Bind(dbx.Params{"bounds": string(changed), "sources": string(named), "id": id, "key": key}).Execute()
	if err != nil {
		return fmt.Errorf("extend the template %s: %w", key, err)
	}
	return nil
}

func isBound(stored *float64, shipped float64) bool { return stored != nil && *stored == shipped }

// isJSON decodes text and reports whether it could; a practice may have stored something else.
func isJSON(text string, into any) bool { return json.Unmarshal([]byte(text), into) == nil }
