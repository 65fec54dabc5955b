package collections

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Types of tracked records, named as in the API.
const (
	ChangeAlert        = "alert"
	ChangeCareTeam     = "care_team"
	ChangeClaim        = "claim"
	ChangeConsent      = "consent"
	ChangeDevice       = "device"
	ChangeEscalation   = "escalation"
	ChangeObservation  = "observation"
	ChangeOrder        = "order"
	ChangePatient      = "patient"
	ChangeSnooze       = "snooze"
	ChangeTimeEntry    = "time_entry"
	ChangeTransmission = "transmission"
	ChangeVitalConfig  = "vital_config"
)

// Kinds of changes.
const (
	WasCreated = "created"
	WasUpdated = "updated"
	WasDeleted = "deleted"
)

// trackedTable is a table with triggers that record its changes, so no writer can bypass the change feed. In its expressions NEW and OLD are
// the row after and before the write.
type trackedTable struct {
	table, noun string
	record      string // the id in the API; {row} is the row
	patient     string // the patient's id; {row} is the row
	// ignored are columns with unreported changes: the service's own bookkeeping, and values derived from other columns.
	ignored []string
	// substitutes are expressions of {row} that are compared instead of a column.
	substitutes map[string]string
	// isPart: the row is part of one object in the API, so every write is an update of that object.
	isPart bool
	// change is an expression for the kind of an update, if it is not always "updated".
	change string
	// createEvent and updateEvent are the events of a new row and of an update; "" for none.
	createEvent, updateEvent string
	// skipInsert: a new row is not reported, only its later changes are.
	skipInsert bool
	// hasStoredTime: the row has its own time of storage. A function call would make SQLite keep a journal of every page that the statement
	// changes, which costs more than the rest of the trigger, and every reading runs it.
	hasStoredTime bool
	// closedWhen is the condition for a row that is closed when it is inserted. It is reported as a second change with closedEvent.
	closedWhen, closedEvent string
	// reassignable: an update may remove the patient, who is then the one that the event is about.
	reassignable bool
}

const (
	rowID      = `{row}.id`
	rowNumber  = `CAST({row}.id AS INTEGER)` // of the numbered collections
	rowPatient = `{row}.patient`
	rowStored  = `{row}.created_at`
)

// trackedTables lists all tracked tables. Source: docs/decisions/changes.md, "Tracked changes".
var trackedTables = []trackedTable{
	{
		table: Patients, noun: ChangePatient, record: rowID, patient: rowID,
		ignored: []string{"email_index", "phone_index", "ssn_index", "version"},
		change: `CASE WHEN OLD.deleted_at = '' AND NEW.deleted_at != '' THEN 'deleted' WHEN OLD.deleted_at != '' AND NEW.deleted_at = '' THEN 'created'
			ELSE 'updated' END`,
		createEvent: `'patient.created'`,
		updateEvent: `CASE WHEN OLD.active AND OLD.deleted_at = '' AND NOT (NEW.active AND NEW.deleted_at = '') THEN 'patient.archived'
			ELSE 'patient.updated' END`,
	},
	{
		table: Observations, noun: ChangeObservation, record: rowID, patient: rowPatient,
		ignored: []string{
			"emr_resource_id", "evaluated_bounds", "fhir_status", "fhir_version", "gateway_key", "processing_ms", "reading_key", "received_at", "transform_error", "transformed_at",
		},
		hasStoredTime: true, createEvent: `'observation.created'`,
		updateEvent: `CASE WHEN NEW.status = '` + StatusEnteredInError + `' AND OLD.status != '` + StatusEnteredInError + `' THEN 'observation.withdrawn' ELSE '' END`,
	},
	{
		table: Alerts, noun: ChangeAlert, record: rowNumber, patient: rowPatient,
		ignored:     []string{"follow_up_told", "held_until", "normal_readings"},
		createEvent: `'alert.raised'`,
		updateEvent: `CASE WHEN NEW.` + alertClosed + ` AND NOT OLD.` + alertClosed + ` THEN 'alert.resolved'
			WHEN OLD.` + alertClosed + ` AND NOT NEW.` + alertClosed + ` THEN 'alert.raised' ELSE '' END`,
		closedWhen: alertClosed, closedEvent: `'alert.resolved'`,
	},
	{
		table: Escalations, noun: ChangeEscalation, record: rowNumber, patient: rowPatient,
		ignored:     []string{"noted_at", "notified_at", "tier_at", "waits_since"},
		substitutes: map[string]string{ColumnUpdatedAt: "{row}.updated_at"}, // the only column that changes when an alert joins
		createEvent: `'escalation.opened'`,
		updateEvent: `CASE WHEN NEW.` + escalationClosed + ` AND NOT OLD.` + escalationClosed + ` THEN 'escalation.resolved'
			ELSE 'escalation.updated' END`,
	},
	{
		table: Devices, noun: ChangeDevice, record: `{row}.device_id`, patient: rowPatient, reassignable: true,
		ignored: []string{
			"battery_at", "battery_level", "battery_told", "clock_observation", "clock_patient", "clock_proven_at", "clock_told_at", "clock_wrong_at", "last_reading_at",
			"last_seen_at", "newest_measured_at", "signal_strength", "state_at",
		},
		updateEvent: `CASE WHEN (OLD.status, OLD.battery_state, OLD.flagged) IS NOT (NEW.status, NEW.battery_state, NEW.flagged) THEN 'device.status'
			ELSE '' END`,
	},
	{
		table: Transmissions, noun: ChangeTransmission, record: rowID, patient: rowPatient, skipInsert: true, // each reading creates one
		ignored: []string{
			"ambiguous", "attempt_count", "claimed_at", "corrections", "correction_closed_at_change", "diagnostics", "error_message", "first_attempted_at",
			"last_attempted_at", "sent_hash", "waits_for_line",
		},
		substitutes: map[string]string{
			"status":        `CASE {row}.status WHEN 'processing' THEN 'pending' ELSE {row}.status END`, // "processing" is too short to report
			"next_retry_at": `(` + transmissionFailed + `)`, "waits_for": "{row}.waits_for",
		},
		updateEvent: `CASE WHEN ` + forRow("NEW", transmissionFailed) + ` AND NOT (` + forRow("OLD", transmissionFailed) + `) THEN 'transmission.failed' ELSE '' END`,
	},
	{
		table: BillingEntries, noun: ChangeClaim, record: rowID, patient: rowPatient, ignored: []string{"facts_checked_at"},
		createEvent: `'claim.updated'`, updateEvent: `'claim.updated'`,
	},
	{table: CareTeamMembers, noun: ChangeCareTeam, record: rowPatient, patient: rowPatient, isPart: true},
	{table: Consents, noun: ChangeConsent, record: rowNumber, patient: rowPatient},
	{table: Orders, noun: ChangeOrder, record: rowNumber, patient: rowPatient},
	{
		table: Snoozes, noun: ChangeSnooze, record: rowNumber, patient: rowPatient,
		ignored: []string{"critical_since", "known", "quiet_since"},
	},
	{table: TimeEntries, noun: ChangeTimeEntry, record: rowNumber, patient: rowPatient},
	{table: Thresholds, noun: ChangeVitalConfig, record: rowPatient, patient: rowPatient, isPart: true},
}

const (
	alertClosed      = `status IN ('resolved', 'auto_resolved')`
	escalationClosed = `status IN ('resolved', 'cancelled')`
	// transmissionFailed: a person must look at the delivery.
	transmissionFailed = `{row}.status = 'failed' AND {row}.next_retry_at = '' AND {row}.waits_for = '' AND {row}.error_code != '` + NeverSent + `'`
)

// alwaysIgnored are columns that no table reports.
var alwaysIgnored = []string{"id", ColumnCreatedAt, ColumnUpdatedAt}

// ChangeTypes lists all tracked types in alphabetical order.
func ChangeTypes() (types []string) {
	for _, t := range trackedTables {
		types = append(types, t.noun)
	}
	slices.Sort(types)
	return types
}

// NumberedChange reports whether the ids of a type are numbers.
func NumberedChange(noun string) bool {
	return slices.ContainsFunc(trackedTables, func(t trackedTable) bool { return t.noun == noun && t.record == rowNumber })
}

// InstallChangeTriggers creates or replaces the triggers of the change feed. The service calls it whenever it opens the data folder, after the
// migrations: a recreated table has lost its triggers, and a new column must be compared. It writes nothing if all triggers are up to date.
func InstallChangeTriggers(app core.App) error {
	want := map[string]string{}
	for _, t := range trackedTables {
		triggers, err := t.triggers(app)
		if err != nil {
			return err
		}
		maps.Copy(want, triggers)
	}
	have, err := readMap[string]("read triggers", app.DB().NewQuery(`SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'changes_*'`))
	if err != nil || maps.Equal(have, want) {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		for _, name := range slices.Sorted(maps.Keys(have)) {
			if have[name] != want[name] {
				if err := exec(tx, "drop trigger "+name, "DROP TRIGGER "+name, nil); err != nil {
					return err
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if have[name] != want[name] {
				if err := exec(tx, "make trigger "+name, want[name], nil); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// triggers returns the SQL of the table's triggers by name.
func (t trackedTable) triggers(app core.App) (map[string]string, error) {
	columns, err := queryColumn[string](app, "read columns of "+t.table, `SELECT name FROM pragma_table_info({:table}) ORDER BY name`, dbx.Params{"table": t.table})
	if err == nil && len(columns) == 0 {
		err = fmt.Errorf("table %s does not exist", t.table)
	}
	if err != nil {
		return nil, err
	}
	created, updated, deleted := quoteSQL(WasCreated), cmp.Or(t.change, quoteSQL(WasUpdated)), quoteSQL(WasDeleted)
	if t.isPart {
		created, deleted = updated, updated
	}
	stored := t.insertChange("NEW", created, t.createEvent)
	if t.closedWhen != "" {
		stored += " INSERT INTO changes (" + triggerColumns + ") SELECT " +
			t.values("NEW", quoteSQL(WasUpdated), t.closedEvent) + " WHERE NEW." + t.closedWhen + ";"
	}
	prefix := "changes_" + t.table
	looked, changed := t.watchedColumns(columns)
	made := map[string]string{}
	for name, text := range map[string][3]string{
		"_insert": {"INSERT", t.hasSubject("NEW"), stored},
		"_update": {"UPDATE OF " + looked, changed, t.insertChange("NEW", updated, t.updateEvent)},
		"_delete": {"DELETE", t.hasSubject("OLD"), t.insertChange("OLD", deleted, "")},
	} {
		if t.skipInsert && text[0] == "INSERT" {
			continue
		}
		when := ""
		if text[1] != "" {
			when = " WHEN " + text[1]
		}
		made[prefix+name] = "CREATE TRIGGER " + prefix + name + " AFTER " + text[0] + " ON " + t.table + when + " BEGIN " + text[2] + " END"
	}
	return made, nil
}

// watchedColumns returns the columns to compare, and the condition that one of them changed.
func (t trackedTable) watchedColumns(columns []string) (looked, changed string) {
	var names, before, after []string
	for _, column := range columns {
		expression, ok := t.substitutes[column]
		if !ok {
			if slices.Contains(t.ignored, column) || slices.Contains(alwaysIgnored, column) {
				continue
			}
			expression = "{row}." + column
		}
		names = append(names, column)
		before, after = append(before, forRow("OLD", expression)), append(after, forRow("NEW", expression))
	}
	changed = "(" + strings.Join(before, ", ") + ") IS NOT (" + strings.Join(after, ", ") + ")"
	if about := t.hasSubject("NEW"); about != "" {
		changed = about + " AND " + changed
	}
	return strings.Join(names, ", "), changed
}

// hasSubject is the condition that a row belongs to an object with an id. The practice's own thresholds belong to no patient.
func (t trackedTable) hasSubject(row string) string {
	if !t.isPart {
		return ""
	}
	return forRow(row, t.record) + " != ''"
}

// triggerColumns are the columns that a trigger writes.
const triggerColumns = "type, record, change, event, patient, at"

// insertChange is the statement that records a change.
func (t trackedTable) insertChange(row, change, event string) string {
	return "INSERT INTO changes (" + triggerColumns + ") VALUES (" + t.values(row, change, event) + ");"
}

func (t trackedTable) values(row, change, event string) string {
	patient, at := forRow(row, t.patient), "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')"
	if t.reassignable && event == t.updateEvent {
		patient = "COALESCE(NULLIF(NEW.patient, ''), OLD.patient)"
	}
	if t.hasStoredTime && event == t.createEvent {
		at = forRow(row, rowStored)
	}
	return strings.Join([]string{quoteSQL(t.noun), forRow(row, t.record), change, cmp.Or(event, "''"), patient, at}, ", ")
}

// forRow inserts OLD or NEW for {row}.
func forRow(row, expression string) string { return strings.ReplaceAll(expression, "{row}", row) }

// quoteSQL quotes a text as an SQL literal.
func quoteSQL(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
