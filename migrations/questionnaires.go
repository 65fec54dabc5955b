package migrations

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795971000_questionnaires.go", addQuestionnaires) }

// questionnaireCollections hold which patient answers which questionnaire, how often, and the answers.
var questionnaireCollections = []string{
	`{"id": "pbc_1795971000", "type": "base", "name": "questionnaire_assignments", "system": false, "fields": [
	{"name": "id", "type": "text", "id": "text3208210256", "autogeneratePattern": "[a-z0-9]{15}", "max": 15, "min": 15, "pattern": "^[a-z0-9]+$", "primaryKey": true, "required": true, "system": true},
	{"name": "patient", "type": "text", "id": "text1795971001", "max": 36, "required": true},
	{"name": "questionnaire", "type": "text", "id": "text1795971002", "max": 40, "required": true},
	{"name": "every_days", "type": "number", "id": "number1795971003", "help": "Days from an answer to the next; 0 for once.", "min": 0, "max": 90, "onlyInt": true},
	{"name": "until", "type": "text", "id": "text1795971004", "help": "The last day, YYYY-MM-DD in the patient's zone; empty for no end.", "max": 10},
	{"name": "assigned_by", "type": "text", "id": "text1795971005", "help": "E-mail address.", "max": 254},
	{"name": "created_at", "type": "text", "id": "text1795971006", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "ended_at", "type": "text", "id": "text1795971007", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "ended_by", "type": "text", "id": "text1795971008", "help": "E-mail address or system.", "max": 254}],
	"indexes": ["CREATE UNIQUE INDEX ` + "`idx_questionnaire_assignments_open` ON `questionnaire_assignments`" + ` (patient, questionnaire) WHERE ended_at = ''",
	"CREATE INDEX ` + "`idx_questionnaire_assignments_patient` ON `questionnaire_assignments`" + ` (patient)"]}`,
	`{"id": "pbc_1795971020", "type": "base", "name": "questionnaire_responses", "system": false, "fields": [
	{"name": "id", "type": "text", "id": "text3208210256", "autogeneratePattern": "[a-z0-9]{15}", "max": 36, "min": 1, "pattern": "^[a-z0-9-]+$", "primaryKey": true, "required": true, "system": true},
	{"name": "patient", "type": "text", "id": "text1795971021", "max": 36, "required": true},
	{"name": "assignment", "type": "text", "id": "text1795971022", "max": 15, "required": true},
	{"name": "questionnaire", "type": "text", "id": "text1795971023", "max": 40, "required": true},
	{"name": "version", "type": "text", "id": "text1795971024", "help": "The version of the questionnaire, YYYY-MM-DD.", "max": 10, "required": true},
	{"name": "answers", "type": "phi", "id": "phi1795971025", "help": "Value by item, as JSON. Encrypted at rest.", "hidden": true, "max": 4000, "purpose": "questionnaire_responses.answers"},
	{"name": "source", "type": "select", "id": "select1795971026", "maxSelect": 1, "required": true, "values": ["patient", "caregiver", "staff"]},
	{"name": "author", "type": "text", "id": "text1795971027", "help": "E-mail address of the account.", "max": 254},
	{"name": "authored_at", "type": "text", "id": "text1795971028", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27}],
	"indexes": ["CREATE INDEX ` + "`idx_questionnaire_responses_assignment` ON `questionnaire_responses`" + ` (assignment, authored_at)",
	"CREATE INDEX ` + "`idx_questionnaire_responses_patient` ON `questionnaire_responses`" + ` (patient, authored_at)",
	"CREATE INDEX ` + "`idx_questionnaire_responses_authored` ON `questionnaire_responses`" + ` (authored_at)"]}`,
}

// addQuestionnaires adds the collections.
func addQuestionnaires(app core.App) error {
	for _, definition := range questionnaireCollections {
		added := &core.Collection{}
		if err := json.Unmarshal([]byte(definition), added); err != nil {
			return err
		}
		if err := app.Save(added); err != nil {
			return fmt.Errorf("store the collection %s: %w", added.Name, err)
		}
	}
	return nil
}
