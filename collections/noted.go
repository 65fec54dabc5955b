package collections

import (
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// noted is a table whose changes nobody follows, and on which worklists rest: a change of a row is noted among the changes as one of
// nothing, with the table's name in place of a record. Whoever follows changes is not shown it; worklists are.
// Source: docs/decisions/changes.md, "What is noted, and not told".
type noted struct {
	table   string
	patient string // whom a row is about; of a row {row}; "" for everybody
	// only is the one column whose change matters, where the table's other changes are told. It names whom the row was about before.
	only string
}

// notedTables are all of them. A row that is taken from a patient is told as the new patient's: that it was another's is noted.
var notedTables = []noted{
	{table: DeviceAssignments, patient: rowOwner},
	{table: Payers},
	{table: PayerRates},
	{table: FeeSchedule},
	{table: Devices, only: "device_id"},
	{table: BillingEntries, patient: rowOwner, only: ColumnPatient},
	{table: Consents, patient: rowOwner, only: ColumnPatient},
	{table: Observations, patient: rowOwner, only: ColumnPatient},
	{table: TimeEntries, patient: rowOwner, only: ColumnPatient},
}

// NotedDays is in place of a record where the days with data of a patient were counted anew.
const NotedDays = "reading_days"

// NoteDays notes that the days with data of a patient were counted anew.
func NoteDays(tx core.App, patientID string) error {
	return exec(tx, "note that days were counted anew", note(quoted(NotedDays), "{:patient}"), dbx.Params{"patient": patientID})
}

// note is the statement that notes a change.
func note(record, patient string) string {
	return "INSERT INTO changes (" + toldColumns + ") VALUES (" +
		strings.Join([]string{"''", record, quoted(WasUpdated), "''", patient, "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')"}, ", ") + ")"
}

// triggers are the table's, by name.
func (n noted) triggers() map[string]string {
	prefix, made := "changes_"+n.table, map[string]string{}
	tell := func(row string) string {
		patient := "''"
		if n.patient != "" {
			patient = of(row, n.patient)
		}
		return note(quoted(n.table), patient) + "; "
	}
	add := func(name, event, body string) {
		made[prefix+name] = "CREATE TRIGGER " + prefix + name + " AFTER " + event + " BEGIN " + body + "END"
	}
	if n.only != "" {
		add("_moved", "UPDATE OF "+n.only+" ON "+n.table+" WHEN OLD."+n.only+" IS NOT NEW."+n.only, tell("OLD"))
		return made
	}
	add("_insert", "INSERT ON "+n.table, tell("NEW"))
	add("_delete", "DELETE ON "+n.table, tell("OLD"))
	add("_update", "UPDATE ON "+n.table, tell("NEW"))
	if n.patient != "" {
		add("_moved", "UPDATE OF "+ColumnPatient+" ON "+n.table+" WHEN OLD."+ColumnPatient+" IS NOT NEW."+ColumnPatient, tell("OLD"))
	}
	return made
}

// Touched is what a change may have touched: of devices and of what is noted, the record; of all, the patient.
type Touched struct {
	Type    string `db:"type"`
	Record  string `db:"record"`
	Patient string `db:"patient"`
}

// TouchedBetween says what the changes after a place touched, up to another; those of some types are left out.
func TouchedBetween(app core.App, after, upTo int64, without []string) (found []Touched, err error) {
	err = app.ConcurrentDB().NewQuery(`SELECT DISTINCT type, CASE WHEN type IN ('', 'device') THEN record ELSE '' END AS record, patient FROM changes
		WHERE seq > {:after} AND seq <= {:upto} AND type NOT IN (SELECT value FROM json_each({:without}))`).
		Bind(dbx.Params{"after": after, "upto": upTo, "without": jsonList(without)}).All(&found)
	return found, wrap(err, "read what was touched")
}

// EverHeld are the patients who hold some devices or have held them.
func EverHeld(app core.App, devices []string) ([]string, error) {
	return queryColumn[string](app, "find who held devices", `SELECT DISTINCT patient FROM device_assignments WHERE device_id`+those, idsOf(devices))
}
