package migrations

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795942800_patient_holds.go", addPatientHolds) }

// patientHoldFields are the latest hold of a patient, and what archiving records about a death.
var patientHoldFields = []string{
	`{"name": "hold_reason", "type": "select", "id": "select2914500101", "help": "Why missed readings are expected.", "maxSelect": 1, "values": ["hospital", "travel", "hospice", "other"]}`,
	`{"name": "hold_from", "type": "text", "id": "text2914500102", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27, "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z$"}`,
	`{"name": "hold_until", "type": "text", "id": "text2914500103", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27, "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z$"}`,
	`{"name": "hold_ended_at", "type": "text", "id": "text2914500104", "help": "Set when the hold ended. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27, "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z$"}`,
	`{"name": "hold_by", "type": "text", "id": "text2914500105", "help": "E-mail address.", "max": 254}`,
	`{"name": "hold_notes", "type": "phi", "id": "phi2914500106", "help": "Encrypted at rest.", "max": 4000, "purpose": "patients.hold_notes"}`,
	`{"name": "deceased_at", "type": "phi", "id": "phi2914500107", "help": "Date of death, YYYY-MM-DD. Encrypted at rest.", "max": 10, "purpose": "patients.deceased_at"}`,
	`{"name": "effective_at", "type": "text", "id": "text2914500108", "help": "When monitoring ended, if before the archiving. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27, "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z$"}`,
}

// addPatientHolds adds these columns, and lets a hold change the version of the triage list. It closes what archived patients still have open,
// because the ladder would notify about them.
func addPatientHolds(app core.App) error {
	patients, err := app.FindCollectionByNameOrId("patients")
	if err != nil {
		return fmt.Errorf("find the patients: %w", err)
	}
	for _, field := range patientHoldFields {
		if err := patients.Fields.AddMarshaledJSON(json.RawMessage(field)); err != nil {
			return err
		}
	}
	patients.AddIndex("idx_patients_hold", false, "hold_until", "hold_until != '' AND hold_ended_at = ''")
	if err := app.Save(patients); err != nil {
		return fmt.Errorf("store the columns of patients: %w", err)
	}
	if err := addChoices(app, "alerts", "resolution_reason", "archived", "patient_hold"); err != nil {
		return err
	}
	if err := addChoices(app, "push_deliveries", "status", "cancelled"); err != nil {
		return err
	}
	const now = `strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')`
	return execute(app,
		`DROP TRIGGER triage_list_patient`,
		`CREATE TRIGGER triage_list_patient AFTER UPDATE ON patients
		WHEN (OLD.mrn, OLD.first_name, OLD.last_name, OLD.primary_provider, OLD.hold_reason, OLD.hold_from, OLD.hold_until, OLD.hold_ended_at, OLD.hold_by)
			IS NOT (NEW.mrn, NEW.first_name, NEW.last_name, NEW.primary_provider, NEW.hold_reason, NEW.hold_from, NEW.hold_until, NEW.hold_ended_at, NEW.hold_by)
		BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END`,
		`UPDATE escalations SET status = 'cancelled', cancelled_by = 'system', cancelled_at = `+now+`, updated_at = `+now+`
			WHERE status IN ('open', 'in_progress') AND patient IN (SELECT id FROM patients WHERE active = FALSE)`,
		`UPDATE alerts SET status = 'resolved', resolved_by = 'system', resolved_at = `+now+`, updated_at = `+now+`, resolution_reason = 'archived',
			acknowledged_by = CASE WHEN acknowledged THEN acknowledged_by ELSE 'system' END,
			acknowledged_at = CASE WHEN acknowledged THEN acknowledged_at ELSE `+now+` END, acknowledged = TRUE
			WHERE status IN ('active', 'acknowledged') AND patient IN (SELECT id FROM patients WHERE active = FALSE)`,
	)
}

// addChoices adds values to a column with a fixed set of them.
func addChoices(app core.App, name, column string, values ...string) error {
	collection, err := app.FindCollectionByNameOrId(name)
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	field, isSelect := collection.Fields.GetByName(column).(*core.SelectField)
	if !isSelect {
		return fmt.Errorf("%s of %s has no fixed values", column, name)
	}
	for _, value := range values {
		if !slices.Contains(field.Values, value) {
			field.Values = append(field.Values, value)
		}
	}
	if err := app.Save(collection); err != nil {
		return fmt.Errorf("store the values of %s: %w", column, err)
	}
	return nil
}
