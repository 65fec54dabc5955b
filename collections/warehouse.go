package collections

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Shape is what stands in a column that leaves for a warehouse.
type Shape int

// The shapes. What is absent is "" in each.
const (
	ShapeText      Shape = iota // a code, or a word
	ShapeCount                  // a whole number
	ShapeMeasure                // a number
	ShapeTruth                  // true or false
	ShapeMoment                 // an instant as it is stored
	ShapeDay                    // 2026-01-15
	ShapeBirthYear              // the year of a date that says how old somebody is
	ShapeID                     // the id of a record, which nobody outside is to see
)

// ShipColumn is a column as it leaves.
type ShipColumn struct {
	Name  string
	Shape Shape
	Of    string // what an id is of, such as "patient"
	from  string
}

// ShipTable is what leaves of a table, a row for a row. Of free text, of what is sealed and of what identifies a person nothing does; the year of
// birth is the one exception.
type ShipTable struct {
	Name     string
	Resource string // what FHIR calls a row; "" for what it has none of
	Columns  []ShipColumn
	table    string
	changed  string // when a row last changed; "" when nobody notes it
	fill     func(app core.App, t *ShipTable, rows []ShipRow) error
}

// ShipRow is a row as it leaves, with its values in the order of the columns.
type ShipRow struct {
	ID        string
	CreatedAt string
	Values    []string
}

// ShipTables are the tables that can leave for a warehouse, but for [ShipReadings].
var ShipTables = []*ShipTable{
	{Name: "alerts", Resource: "Flag", table: Alerts, changed: ColumnUpdatedAt, Columns: []ShipColumn{
		ownID("alert"), ofPatient, idOf("observation", "observation"), idOf("escalation", "escalation"), idOf("device_id", "device"), word("type"), word("level"), word("status"),
		word("parameter"), measure("value"), measure("threshold"), word("origin"), truth("late"), truth("snoozed"), truth("acknowledged"), word("resolution_reason"),
		moment("measured_at"), moment("created_at"), moment("acknowledged_at"), idOf("acknowledged_by", "user"), moment("resolved_at"), moment("updated_at"),
	}},
	{Name: "billing_entries", table: BillingEntries, changed: ColumnUpdatedAt, Columns: []ShipColumn{
		ownID("billing_entry"), ofPatient, word("cpt_code"), whole("units"), word("lifecycle_status"), word("source"), date("service_date"), date("billing_period_start"),
		date("billing_period_end"), whole("duration_minutes"), measure("transmission_days"), whole("amount_cents"), whole("charge_cents"), whole("paid_total_cents"),
		whole("adjusted_cents"), whole("patient_responsibility_cents"), whole("refunded_cents"), word("payer_name"), word("denial_code"), date("denial_date"), date("payment_date"),
		idOf("rendering_provider", "user"), moment("created_at"), moment("reviewed_at"), moment("submitted_at"), moment("updated_at"),
	}},
	{Name: "devices", Resource: "Device", table: Devices, Columns: []ShipColumn{
		{"id", ShapeID, "device", "device_id"},
		ofPatient, word("kind"), word("manufacturer"), word("model"), word("firmware_version"), word("status"), measure("battery_level"),
		truth("flagged"), moment("assigned_at"), moment("setup_completed_at"), moment("last_reading_at"), moment("last_seen_at"), moment("created_at"),
	}},
	{Name: "escalations", table: Escalations, changed: ColumnUpdatedAt, Columns: []ShipColumn{
		ownID("escalation"), ofPatient, idOf("alert", "alert"), word("priority"), word("status"), whole("tier"), idOf("assigned_to", "user"), measure("interaction_minutes"),
		moment("created_at"), moment("notified_at"), moment("assigned_at"), moment("resolved_at"), moment("cancelled_at"), moment("updated_at"),
	}},
	{Name: "patients", Resource: "Patient", table: Patients, changed: ColumnUpdatedAt, fill: fillBirthdays, Columns: []ShipColumn{
		ownID("patient"),
		{"birth_year", ShapeBirthYear, "", "''"},
		word("gender"), truth("active"),
		{"deleted", ShapeTruth, "", "deleted_at != ''"},
		word("icd10_codes"),
		word("programs"), idOf("primary_provider", "user"), moment("created_at"), moment("archived_at"), moment("updated_at"),
	}},
	{Name: "time_entries", table: TimeEntries, changed: ColumnUpdatedAt, Columns: []ShipColumn{
		ownID("time_entry"), ofPatient, idOf("user", "user"), word("category"), word("activity"), word("contact_method"), word("source"), moment("started_at"), moment("ended_at"),
		whole("duration_seconds"), whole("overlap_seconds"), idOf("escalation", "escalation"), idOf("billing_entry", "billing_entry"), truth("auto_stopped"),
		moment("attested_at"), moment("created_at"), moment("updated_at"),
	}},
	{Name: "transmissions", table: Transmissions, changed: ColumnUpdatedAt, Columns: []ShipColumn{
		ownID("transmission"), ofPatient, idOf("observation", "observation"), word("observation_type"), word("form"), word("status"), whole("attempt_count"), whole("corrections"),
		word("error_code"), moment("created_at"), moment("first_attempted_at"), moment("last_attempted_at"), moment("updated_at"),
	}},
}

// ShipReadings is the table of readings: what they measured and said stands in columns that their kinds name.
func ShipReadings(measured, said []string) *ShipTable {
	columns := []ShipColumn{
		ownID("observation"), ofPatient,
		{"type", ShapeText, "", "observation_type"},
		idOf("device_id", "device"), moment("measured_at"),
		{"received_at", ShapeMoment, "", "created_at"},
	}
	for _, name := range measured {
		columns = append(columns, measure(name))
	}
	for _, name := range said {
		columns = append(columns, word(name))
	}
	columns = append(columns, word("source"), word("origin"), word("status"), word("review_state"), moment("updated_at"))
	return &ShipTable{Name: "observations", Resource: "Observation", table: Observations, changed: ColumnUpdatedAt, Columns: columns}
}

var ofPatient = idOf("patient", "patient")

func ownID(of string) ShipColumn     { return ShipColumn{"id", ShapeID, of, "id"} }
func word(name string) ShipColumn    { return ShipColumn{name, ShapeText, "", name} }
func whole(name string) ShipColumn   { return ShipColumn{name, ShapeCount, "", name} }
func measure(name string) ShipColumn { return ShipColumn{name, ShapeMeasure, "", name} }
func truth(name string) ShipColumn   { return ShipColumn{name, ShapeTruth, "", name} }
func moment(name string) ShipColumn  { return ShipColumn{name, ShapeMoment, "", name} }
func date(name string) ShipColumn    { return ShipColumn{name, ShapeDay, "", name} }

// idOf is the id of something else, under a name that says so.
func idOf(column, of string) ShipColumn {
	name := column
	if column == of {
		name += "_id"
	}
	return ShipColumn{name, ShapeID, of, `"` + column + `"`}
}

// Hours are the hours, in UTC, in which the rows were made that changed since a time; all of them for the zero time, or when nobody notes changes.
func (t *ShipTable) Hours(app core.App, since time.Time) ([]time.Time, error) {
	changed := t.changed
	if changed == "" {
		changed = "'9999'"
	}
	found, err := queryColumn[string](app, "find what changed of "+t.Name, fmt.Sprintf(`SELECT DISTINCT substr(created_at, 1, 13) FROM %s
		WHERE created_at != '' AND %s >= {:since}`, t.table, changed), dbx.Params{"since": Instant(since)})
	if err != nil {
		return nil, err
	}
	slices.Sort(found)
	hours := make([]time.Time, 0, len(found))
	for _, text := range found {
		if at := ParseInstant(text + ":00:00.000000Z"); !at.IsZero() {
			hours = append(hours, at)
		}
	}
	return hours, nil
}

// Page reads some of the rows that were made in a span of time, the end excluded, in the order in which they were made. It is one short read.
func (t *ShipTable) Page(app core.App, from, to time.Time, after ShipRow, limit int) ([]ShipRow, error) {
	said := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		if said[i] = c.from; c.Shape == ShapeTruth {
			said[i] = "CASE WHEN " + c.from + " THEN 'true' ELSE 'false' END"
		}
	}
	rows, err := app.ConcurrentDB().NewQuery(fmt.Sprintf(`SELECT id, created_at, %s FROM %s
		WHERE created_at >= {:from} AND created_at < {:to} AND (created_at, id) > ({:at}, {:id}) ORDER BY created_at, id LIMIT +{:limit}`,
		strings.Join(said, ", "), t.table)).
		Bind(dbx.Params{"from": Instant(from), "to": Instant(to), "at": after.CreatedAt, "id": after.ID, "limit": limit}).Rows()
	if err != nil {
		return nil, wrap(err, "read %s", t.Name)
	}
	defer func() { _ = rows.Close() }() // everything was read
	var page []ShipRow
	for rows.Next() {
		found := make([]sql.NullString, len(t.Columns)+2)
		into := make([]any, len(found))
		for i := range found {
			into[i] = &found[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, wrap(err, "read a row of %s", t.Name)
		}
		row := ShipRow{ID: found[0].String, CreatedAt: found[1].String, Values: make([]string, len(t.Columns))}
		for i := range t.Columns {
			row.Values[i] = found[i+2].String
		}
		page = append(page, row)
	}
	if err := rows.Err(); err != nil || t.fill == nil {
		return page, wrap(err, "read %s", t.Name)
	}
	return page, t.fill(app, t, page)
}

// fillBirthdays opens when patients were born. Who cannot be read is of no age.
func fillBirthdays(app core.App, t *ShipTable, rows []ShipRow) error {
	at := slices.IndexFunc(t.Columns, func(c ShipColumn) bool { return c.Shape == ShapeBirthYear })
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	people, err := PatientsByID(app, ids)
	if err != nil {
		return err
	}
	born := make(map[string]string, len(people))
	for _, p := range people {
		if Readable(p.ProxyRecord()) == nil {
			born[p.Id] = p.Demographics().DateOfBirth
		}
	}
	for _, row := range rows {
		row.Values[at] = born[row.ID]
	}
	return nil
}
