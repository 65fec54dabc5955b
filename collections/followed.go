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

// The types of what is followed: the nouns of the API.
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

// What happened to it.
const (
	WasCreated = "created"
	WasUpdated = "updated"
	WasDeleted = "deleted"
)

// followed is a table whose changes are told, by triggers: nobody who writes it, in whatever way, can forget to. In its expressions NEW and OLD are the
// row after and before.
type followed struct {
	table, noun string
	record      string // the id under which the API has it; of a row {row}
	patient     string // whom it is about; of a row {row}
	// unmarked are the columns whose change is nobody's news: what the service notes for itself, and what follows from other columns.
	unmarked []string
	// instead are expressions of {row} that are looked at in place of a column.
	instead map[string]string
	// part: a row is a part of what the API shows as one, which is updated whatever happens to the row.
	part bool
	// change is what an update was, if it may be something else than that.
	change string
	// raised, moved are the events of a new row and of an update; "" for none.
	raised, moved string
	// unraised: that it is made is no news, but what becomes of it.
	unraised bool
	// stamped: a new row says itself when it was stored. Calling a function would have SQLite keep a journal of every page that the statement touches,
	// which costs more than all the rest, and no reading is stored without this.
	stamped bool
	// over is when a row is over as soon as it is stored, which is told as a second change, and ended its event.
	over, ended string
	// handedOn: an update may take it from a patient, who is whom that is about.
	handedOn bool
}

const (
	rowID     = `{row}.id`
	rowCount  = `CAST({row}.id AS INTEGER)` // of the numbered collections
	rowOwner  = `{row}.patient`
	rowStored = `{row}.created_at`
)

// followedTables are all whose changes are told. Source: docs/decisions/changes.md, "Tracked changes".
var followedTables = []followed{
	{
		table: Patients, noun: ChangePatient, record: rowID, patient: rowID,
		unmarked: []string{"email_index", "phone_index", "ssn_index", "version"},
		change: `CASE WHEN OLD.deleted_at = '' AND NEW.deleted_at != '' THEN 'deleted' WHEN OLD.deleted_at != '' AND NEW.deleted_at = '' THEN 'created'
			ELSE 'updated' END`,
		raised: `'patient.created'`,
		moved: `CASE WHEN OLD.active AND OLD.deleted_at = '' AND NOT (NEW.active AND NEW.deleted_at = '') THEN 'patient.archived'
			ELSE 'patient.updated' END`,
	},
	{
		table: Observations, noun: ChangeObservation, record: rowID, patient: rowOwner,
		unmarked: []string{
			"emr_resource_id", "fhir_status", "fhir_version", "gateway_key", "processing_ms", "reading_key", "transform_error", "transformed_at",
		},
		stamped: true, raised: `'observation.created'`,
		moved: `CASE WHEN NEW.status = '` + StatusEnteredInError + `' AND OLD.status != '` + StatusEnteredInError + `' THEN 'observation.withdrawn' ELSE '' END`,
	},
	{
		table: Alerts, noun: ChangeAlert, record: rowCount, patient: rowOwner,
		unmarked: []string{"follow_up_told", "held_until", "normal_readings"},
		raised:   `'alert.raised'`,
		moved: `CASE WHEN NEW.` + alertOver + ` AND NOT OLD.` + alertOver + ` THEN 'alert.resolved'
			WHEN OLD.` + alertOver + ` AND NOT NEW.` + alertOver + ` THEN 'alert.raised' ELSE '' END`,
		over: alertOver, ended: `'alert.resolved'`,
	},
	{
		table: Escalations, noun: ChangeEscalation, record: rowCount, patient: rowOwner,
		unmarked: []string{"noted_at", "notified_at", "tier_at", "waits_since"},
		instead:  map[string]string{ColumnUpdatedAt: "{row}.updated_at"}, // that an alert joined is seen in nothing else
		raised:   `'escalation.opened'`,
		moved: `CASE WHEN NEW.` + escalationOver + ` AND NOT OLD.` + escalationOver + ` THEN 'escalation.resolved'
			ELSE 'escalation.updated' END`,
	},
	{
		table: Devices, noun: ChangeDevice, record: `{row}.device_id`, patient: rowOwner, handedOn: true,
		unmarked: []string{
			"battery_at", "battery_level", "battery_told", "clock_observation", "clock_patient", "clock_told_at", "clock_wrong_at", "last_reading_at",
			"last_seen_at", "signal_strength", "state_at",
		},
		moved: `CASE WHEN (OLD.status, OLD.battery_state, OLD.flagged) IS NOT (NEW.status, NEW.battery_state, NEW.flagged) THEN 'device.status'
			ELSE '' END`,
	},
	{
		table: Transmissions, noun: ChangeTransmission, record: rowID, patient: rowOwner, unraised: true, // one is made with every reading
		unmarked: []string{
			"ambiguous", "attempt_count", "claimed_at", "corrections", "correction_closed_at_change", "diagnostics", "error_message", "first_attempted_at",
			"last_attempted_at", "sent_hash", "waits_for_line",
		},
		instead: map[string]string{
			"status":        `CASE {row}.status WHEN 'processing' THEN 'pending' ELSE {row}.status END`, // that it is being sent is over at once
			"next_retry_at": `(` + transmissionFailed + `)`, "waits_for": "{row}.waits_for",
		},
		moved: `CASE WHEN ` + of("NEW", transmissionFailed) + ` AND NOT (` + of("OLD", transmissionFailed) + `) THEN 'transmission.failed' ELSE '' END`,
	},
	{
		table: BillingEntries, noun: ChangeClaim, record: rowID, patient: rowOwner, unmarked: []string{"facts_checked_at"},
		raised: `'claim.updated'`, moved: `'claim.updated'`,
	},
	{table: CareTeamMembers, noun: ChangeCareTeam, record: rowOwner, patient: rowOwner, part: true},
	{table: Consents, noun: ChangeConsent, record: rowCount, patient: rowOwner},
	{table: Orders, noun: ChangeOrder, record: rowCount, patient: rowOwner},
	{
		table: Snoozes, noun: ChangeSnooze, record: rowCount, patient: rowOwner,
		unmarked: []string{"critical_since", "known", "quiet_since"},
	},
	{table: TimeEntries, noun: ChangeTimeEntry, record: rowCount, patient: rowOwner},
	{table: Thresholds, noun: ChangeVitalConfig, record: rowOwner, patient: rowOwner, part: true},
}

const (
	alertOver      = `status IN ('resolved', 'auto_resolved')`
	escalationOver = `status IN ('resolved', 'cancelled')`
	// transmissionFailed: a person must look.
	transmissionFailed = `{row}.status = 'failed' AND {row}.next_retry_at = '' AND {row}.waits_for = '' AND {row}.error_code != '` + NeverSent + `'`
)

// unmarkedEverywhere are no news on any table.
var unmarkedEverywhere = []string{"id", ColumnCreatedAt, ColumnUpdatedAt}

// ChangeTypes are all types that are told, in order.
func ChangeTypes() (types []string) {
	for _, t := range followedTables {
		types = append(types, t.noun)
	}
	slices.Sort(types)
	return types
}

// NumberedChange reports whether the ids of a type are numbers.
func NumberedChange(noun string) bool {
	return slices.ContainsFunc(followedTables, func(t followed) bool { return t.noun == noun && t.record == rowCount })
}

// TellChanges has every change of what is followed told from now on. It is called whenever the data folder is opened, after the migrations: a table that was
// made anew has lost its triggers, a column that was added is to be looked at. Where all is as it should be, nothing is written.
func TellChanges(app core.App) error {
	want := map[string]string{}
	for _, t := range followedTables {
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
				if err := exec(tx, "drop a trigger", "DROP TRIGGER "+name, nil); err != nil {
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

// triggers are the table's, by name.
func (t followed) triggers(app core.App) (map[string]string, error) {
	columns, err := queryColumn[string](app, "read columns of "+t.table, `SELECT name FROM pragma_table_info({:table}) ORDER BY name`, dbx.Params{"table": t.table})
	if err == nil && len(columns) == 0 {
		err = fmt.Errorf("there is no table %s", t.table)
	}
	if err != nil {
		return nil, err
	}
	created, updated, deleted := quoted(WasCreated), cmp.Or(t.change, quoted(WasUpdated)), quoted(WasDeleted)
	if t.part {
		created, deleted = updated, updated
	}
	stored := t.tell("NEW", created, t.raised)
	if t.over != "" {
		stored += " INSERT INTO changes (" + toldColumns + ") SELECT " +
			t.values("NEW", quoted(WasUpdated), t.ended) + " WHERE NEW." + t.over + ";"
	}
	prefix := "changes_" + t.table
	looked, changed := t.looksAt(columns)
	made := map[string]string{}
	for name, text := range map[string][3]string{
		"_insert": {"INSERT", t.about("NEW"), stored},
		"_update": {"UPDATE OF " + looked, changed, t.tell("NEW", updated, t.moved)},
		"_delete": {"DELETE", t.about("OLD"), t.tell("OLD", deleted, "")},
	} {
		if t.unraised && text[0] == "INSERT" {
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

// looksAt are the columns whose change is looked at, and the condition that one of them did change.
func (t followed) looksAt(columns []string) (looked, changed string) {
	var names, before, after []string
	for _, column := range columns {
		expression, ok := t.instead[column]
		if !ok {
			if slices.Contains(t.unmarked, column) || slices.Contains(unmarkedEverywhere, column) {
				continue
			}
			expression = "{row}." + column
		}
		names = append(names, column)
		before, after = append(before, of("OLD", expression)), append(after, of("NEW", expression))
	}
	changed = "(" + strings.Join(before, ", ") + ") IS NOT (" + strings.Join(after, ", ") + ")"
	if about := t.about("NEW"); about != "" {
		changed = about + " AND " + changed
	}
	return strings.Join(names, ", "), changed
}

// about is the condition that a row is about something that has an id: the practice's own thresholds are no patient's.
func (t followed) about(row string) string {
	if !t.part {
		return ""
	}
	return of(row, t.record) + " != ''"
}

// toldColumns are what a change says.
const toldColumns = "type, record, change, event, patient, at"

// tell is the statement that tells a change.
func (t followed) tell(row, change, event string) string {
	return "INSERT INTO changes (" + toldColumns + ") VALUES (" + t.values(row, change, event) + ");"
}

func (t followed) values(row, change, event string) string {
	patient, at := of(row, t.patient), "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')"
	if t.handedOn && event == t.moved {
		patient = "COALESCE(NULLIF(NEW.patient, ''), OLD.patient)"
	}
	if t.stamped && event == t.raised {
		at = of(row, rowStored)
	}
	return strings.Join([]string{quoted(t.noun), of(row, t.record), change, cmp.Or(event, "''"), patient, at}, ", ")
}

// of says which row an expression is of.
func of(row, expression string) string { return strings.ReplaceAll(expression, "{row}", row) }

// quoted is a text as SQL has it.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
