package migrations

import "github.com/pocketbase/pocketbase/core"

// Whoever remembers a page of the triage list has to know whether it still holds. A number says so, which triggers count up in the transaction of
// every change of what a page shows: a place on the list, a name, a care team, an escalation.
//
// One change is too frequent for a trigger of its own, which would take a twentieth of the processor time of a reading: a place that is worked out anew,
// which is stamped. With a reading there is a row among the changes, which says it too; elsewhere the program counts.
func init() {
	step("1767225990_triage_version.go", func(app core.App) error { return execute(app, triageVersion...) })
}

const otherList = ` BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END`

var triageVersion = []string{
	`INSERT INTO sequences (name, value) VALUES ('triage_list', 1)`,
	`CREATE TRIGGER triage_list_join AFTER INSERT ON triage_scores` + otherList,
	`CREATE TRIGGER triage_list_leave AFTER DELETE ON triage_scores` + otherList,
	`CREATE TRIGGER triage_list_place AFTER UPDATE ON triage_scores WHEN NEW.scored_at IS OLD.scored_at` + otherList,
	`CREATE TRIGGER triage_list_rest AFTER UPDATE OF patient, listed, last_reviewed_at, last_reviewed_by, enrolled_at ON triage_scores` + otherList,
	`CREATE TRIGGER triage_list_patient_new AFTER INSERT ON patients` + otherList,
	`CREATE TRIGGER triage_list_patient_gone AFTER DELETE ON patients` + otherList,
	`CREATE TRIGGER triage_list_patient AFTER UPDATE ON patients
		WHEN (OLD.mrn, OLD.first_name, OLD.last_name, OLD.primary_provider) IS NOT (NEW.mrn, NEW.first_name, NEW.last_name, NEW.primary_provider)` + otherList,
	`CREATE TRIGGER triage_list_team_new AFTER INSERT ON care_team_members` + otherList,
	`CREATE TRIGGER triage_list_team_gone AFTER DELETE ON care_team_members` + otherList,
	`CREATE TRIGGER triage_list_team AFTER UPDATE ON care_team_members` + otherList,
	`CREATE TRIGGER triage_list_escalation_new AFTER INSERT ON escalations` + otherList,
	`CREATE TRIGGER triage_list_escalation_gone AFTER DELETE ON escalations` + otherList,
	`CREATE TRIGGER triage_list_escalation AFTER UPDATE ON escalations
		WHEN (OLD.patient, OLD.status) IS NOT (NEW.patient, NEW.status)` + otherList,
}
