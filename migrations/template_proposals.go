package migrations

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795939201_template_proposals.go", addTemplateProposals) }

// addTemplateProposals adds what the triage row has about undecided templates, the age group of infants, the template for weak immunity, and the
// diagnoses after birth to the template for pregnancy. Proposals of patients who are stored already are computed after the start, because the
// date of birth is sealed.
func addTemplateProposals(app core.App) error {
	err := execute(app,
		`ALTER TABLE triage_scores ADD COLUMN proposed_templates TEXT DEFAULT '' NOT NULL`,
		`ALTER TABLE triage_scores ADD COLUMN declined_templates TEXT DEFAULT '' NOT NULL`,
		`ALTER TABLE triage_scores ADD COLUMN provisional TEXT DEFAULT '' NOT NULL`,
		`ALTER TABLE triage_scores ADD COLUMN provisional_since TEXT DEFAULT '' NOT NULL`,
		"CREATE INDEX `idx_triage_scores_provisional` ON `triage_scores` (`patient`) WHERE provisional_since != ''",
	)
	if err != nil {
		return err
	}
	scores, err := app.FindCollectionByNameOrId("triage_scores")
	if err != nil {
		return fmt.Errorf("find the triage list: %w", err)
	}
	scores.Fields.Add(
		&core.TextField{Name: "proposed_templates", Help: "Numbers of templates that fit and are not decided; empty until looked for.", Max: 65536},
		&core.TextField{Name: "declined_templates", Help: "Templates that a clinician declined.", Max: 65536},
		&core.TextField{Name: "provisional", Help: "Bounds of undecided templates in force.", Max: 65536},
		&core.TextField{Name: "provisional_since", Help: "UTC, as 2026-01-15T13:45:00.000000Z.", Max: 27},
	)
	scores.AddIndex("idx_triage_scores_provisional", false, "`patient`", "provisional_since != ''")
	if group, ok := scores.Fields.GetByName("age_group").(*core.SelectField); ok && !slices.Contains(group.Values, "infant") {
		group.Values = append([]string{"infant"}, group.Values...)
	}
	if err := app.UnsafeWithoutHooks().SaveNoValidate(scores); err != nil {
		return fmt.Errorf("store the collection of the triage list: %w", err)
	}
	if err := app.ReloadCachedCollections(); err != nil {
		return err
	}
	if err := addImmunosuppressed(app); err != nil {
		return err
	}
	return addPostpartum(app)
}

// addImmunosuppressed adds the template under the next number, unless the practice has one with this key.
func addImmunosuppressed(app core.App) error {
	return execute(app,
		`INSERT INTO sequences (name, value) SELECT 'threshold_templates', 0 WHERE NOT EXISTS (SELECT 1 FROM sequences WHERE name = 'threshold_templates')`,
		`INSERT INTO threshold_templates (bounds, created_at, diagnoses, id, key, max_age, min_age, name, signed_off_at, signed_off_by, sources, updated_at, updated_by, version)
			SELECT '{"body_temperature": {"high": 37.8, "critical": 38}}', '2026-11-29T00:00:00.000000Z',
				'["Z94", "D70", "D80", "D81", "D82", "D83", "D84"]', printf('%015d', value + 1), 'immunosuppressed', NULL, NULL, 'Immunosuppressed', '', '',
				'["IDSA guideline, antimicrobial agents in neutropenic patients with cancer, 2010: fever is 38.3 once, or 38.0 for an hour", "NCCN guideline, prevention and treatment of cancer-related infections, 2025: the same", "AST guideline, infections after solid organ transplantation, 2019"]',
				'2026-11-29T00:00:00.000000Z', '', 1
			FROM sequences WHERE name = 'threshold_templates' AND NOT EXISTS (SELECT 1 FROM threshold_templates WHERE key = 'immunosuppressed' COLLATE NOCASE)`,
		`UPDATE sequences SET value = value + 1 WHERE name = 'threshold_templates'
			AND EXISTS (SELECT 1 FROM threshold_templates WHERE key = 'immunosuppressed' AND id = printf('%015d', sequences.value + 1))`,
	)
}

// shippedPregnancy are the diagnoses of the template for pregnancy as the baseline makes it.
var shippedPregnancy = []string{"O09", "O10", "O11", "O12", "O13", "O14", "O15", "O16", "Z33.1", "Z34", "Z3A"}

// addPostpartum adds the codes of the third stage of labor to the end of the puerperium. A list that the practice changed stays. A template in
// use gets a new version, and its sign-off ends, as after any change.
func addPostpartum(app core.App) error {
	var stored string
	err := app.DB().NewQuery("SELECT COALESCE((SELECT diagnoses FROM threshold_templates WHERE key = 'pregnancy'), '')").Row(&stored)
	if err != nil {
		return fmt.Errorf("read the template for pregnancy: %w", err)
	}
	var codes []string
	if stored == "" || !isJSON(stored, &codes) || !slices.Equal(codes, shippedPregnancy) {
		return nil
	}
	for category := 72; category <= 92; category++ {
		codes = append(codes, fmt.Sprintf("O%d", category))
	}
	list, err := json.Marshal(append(codes, "Z39"))
	if err != nil {
		return err
	}
	_, err = app.DB().NewQuery(`UPDATE threshold_templates SET diagnoses = {:codes}, signed_off_by = '', signed_off_at = '',
			version = version + (signed_off_by != '' OR EXISTS (SELECT 1 FROM thresholds h, json_each(h.templates) a
				WHERE json_valid(h.templates) AND h.templates != 'null' AND a.value ->> 'key' = 'pregnancy'))
		WHERE key = 'pregnancy'`).Bind(dbx.Params{"codes": string(list)}).Execute()
	if err != nil {
		return fmt.Errorf("extend the template for pregnancy: %w", err)
	}
	return nil
}
