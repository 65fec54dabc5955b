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

// Shape is the type of an exported column.
type Shape int

// Shapes. An absent value is "" in each.
const (
	ShapeText      Shape = iota // a code or word
	ShapeCount                  // an integer
	ShapeMeasure                // a number
	ShapeTruth                  // a boolean
	ShapeMoment                 // a stored instant
	ShapeDay                    // 2026-01-15
	ShapeBirthYear              // the year of a birth date
	ShapeID                     // a record id, to be pseudonymized
)

// WarehouseColumn is an exported column.
type WarehouseColumn struct {
	Name  string
	Shape Shape
	Of    string // type of the id, such as "patient"
	from  string
}

// WarehouseTable is the exported part of a table, row by row. It has no free text, sealed or identifying data, except the year of birth.
type WarehouseTable struct {
	Name     string
	Resource string // FHIR resource type, or ""
	Columns  []WarehouseColumn
	table    string
	changed  string // column with the last change, or ""
	fill     func(app core.App, t *WarehouseTable, rows []WarehouseRow) error
}

// WarehouseRow is an exported row, with its values in the order of the columns.
type WarehouseRow struct {
	ID        string
	CreatedAt string
	Values    []string
}

// WarehouseTables are the exported tables, except [WarehouseReadings].
var WarehouseTables = []*WarehouseTable{
	{Name: "alerts", Resource: "Flag", table: Alerts, changed: ColumnUpdatedAt, Columns: []WarehouseColumn{
		ownID("alert"), ofPatient, idOf("observation", "observation"), idOf("escalation", "escalation"), idOf("device_id", "device"), word("type"), word("level"), word("status"),
		word("parameter"), measure("value"), measure("threshold"), word("origin"), truth("late"), truth("snoozed"), truth("acknowledged"), word("resolution_reason"),
		moment("measured_at"), moment("created_at"), moment("acknowledged_at"), idOf("acknowledged_by", "user"), moment("resolved_at"), moment("updated_at"),
	}},
	{Name: "billing_entries", table: BillingEntries, changed: ColumnUpdatedAt, Columns: []WarehouseColumn{
		ownID("billing_entry"), ofPatient, word("cpt_code"), whole("units"), word("lifecycle_status"), word("source"), date("service_date"), date("billing_period_start"),
		date("billing_period_end"), whole("duration_minutes"), measure("transmission_days"), whole("amount_cents"), whole("charge_cents"), whole("paid_total_cents"),
		whole("adjusted_cents"), whole("patient_responsibility_cents"), whole("refunded_cents"), word("payer_name"), word("denial_code"), date("denial_date"), date("payment_date"),
		idOf("rendering_provider", "user"), moment("created_at"), moment("reviewed_at"), moment("submitted_at"), moment("updated_at"),
	}},
	{Name: "devices", Resource: "Device", table: Devices, Columns: []WarehouseColumn{
		{"id", ShapeID, "device", "device_id"},
		ofPatient, word("kind"), word("manufacturer"),
		{"model", ShapeText, "", "COALESCE(NULLIF(model, ''), reported_model)"},
		word("firmware_version"), word("status"), measure("battery_level"),
		truth("flagged"), moment("assigned_at"), moment("setup_completed_at"), moment("last_reading_at"), moment("last_seen_at"), moment("created_at"),
	}},
	{Name: "escalations", table: Escalations, changed: ColumnUpdatedAt, Columns: []WarehouseColumn{
		ownID("escalation"), ofPatient, idOf("alert", "alert"), word("priority"), word("status"), whole("tier"), idOf("assigned_to", "user"), measure("interaction_minutes"),
		moment("created_at"), moment("notified_at"), moment("assigned_at"), moment("resolved_at"), moment("cancelled_at"), moment("updated_at"),
	}},
	{Name: "patients", Resource: "Patient", table: Patients, changed: ColumnUpdatedAt, fill: fillBirthdays, Columns: []WarehouseColumn{
		ownID("patient"),
		{"birth_year", ShapeBirthYear, "", "''"},
		word("gender"), truth("active"),
		{"deleted", ShapeTruth, "", "deleted_at != ''"},
		word("icd10_codes"),
		word("programs"), idOf("primary_provider", "user"), moment("created_at"), moment("archived_at"), moment("updated_at"),
	}},
	{Name: "time_entries", table: TimeEntries, changed: ColumnUpdatedAt, Columns: []WarehouseColumn{
		ownID("time_entry"), ofPatient, idOf("user", "user"), word("category"), word("activity"), word("contact_method"), word("source"), moment("started_at"), moment("ended_at"),
		whole("duration_seconds"), whole("overlap_seconds"), idOf("escalation", "escalation"), idOf("billing_entry", "billing_entry"), truth("auto_stopped"),
		moment("attested_at"), moment("created_at"), moment("updated_at"),
	}},
	{Name: "transmissions", table: Transmissions, changed: ColumnUpdatedAt, Columns: []WarehouseColumn{
		ownID("transmission"), ofPatient, idOf("observation", "observation"), word("observation_type"), word("form"), word("status"), whole("attempt_count"), whole("corrections"),
		word("error_code"), moment("created_at"), moment("first_attempted_at"), moment("last_attempted_at"), moment("updated_at"),
	}},
}

// WarehouseReadings returns the table of readings. The kinds of readings name its columns of numbers (measured) and of words.
func WarehouseReadings(measured, words []string) *WarehouseTable {
	columns := []WarehouseColumn{
		ownID("observation"), ofPatient,
		{"type", ShapeText, "", "observation_type"},
		idOf("device_id", "device"), moment("measured_at"),
		{"received_at", ShapeMoment, "", "created_at"},
	}
	for _, name := range measured {
		columns = append(columns, measure(name))
	}
	for _, name := range words {
		columns = append(columns, word(name))
	}
	columns = append(columns, word("source"), word("origin"), word("status"), word("review_state"), moment("updated_at"))
	return &WarehouseTable{Name: "observations", Resource: "Observation", table: Observations, changed: ColumnUpdatedAt, Columns: columns}
}

var ofPatient = idOf("patient", "patient")

func ownID(of string) WarehouseColumn     { return WarehouseColumn{"id", ShapeID, of, "id"} }
func word(name string) WarehouseColumn    { return WarehouseColumn{name, ShapeText, "", name} }
func whole(name string) WarehouseColumn   { return WarehouseColumn{name, ShapeCount, "", name} }
func measure(name string) WarehouseColumn { return WarehouseColumn{name, ShapeMeasure, "", name} }
func truth(name string) WarehouseColumn   { return WarehouseColumn{name, ShapeTruth, "", name} }
func moment(name string) WarehouseColumn  { return WarehouseColumn{name, ShapeMoment, "", name} }
func date(name string) WarehouseColumn    { return WarehouseColumn{name, ShapeDay, "", name} }

// idOf is the id of another object, in a column named accordingly.
func idOf(column, of string) WarehouseColumn {
	name := column
	if column == of {
		name += "_id"
	}
	return WarehouseColumn{name, ShapeID, of, `"` + column + `"`}
}

// Hours returns the UTC hours of creation of the rows changed since a time; of all rows for the zero time, or if the table has no time of
// change.
func (t *WarehouseTable) Hours(app core.App, since time.Time) ([]time.Time, error) {
	changed := t.changed
	if changed == "" {
		changed = "'9999'"
	}
	found, err := queryColumn[string](app, "find changed hours of "+t.Name, fmt.Sprintf(`SELECT DISTINCT substr(created_at, 1, 13) FROM %s
		WHERE created_at != '' AND %s >= {:since}`, t.table, changed), dbx.Params{"since": FormatInstant(since)})
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

// Page reads rows created in a half-open span, in order of creation. It is one short read.
func (t *WarehouseTable) Page(app core.App, from, to time.Time, after WarehouseRow, limit int) ([]WarehouseRow, error) {
	selected := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		if selected[i] = c.from; c.Shape == ShapeTruth {
			selected[i] = "CASE WHEN " + c.from + " THEN 'true' ELSE 'false' END"
		}
	}
	rows, err := app.ConcurrentDB().NewQuery(fmt.Sprintf(`SELECT id, created_at, %s FROM %s
		WHERE created_at >= {:from} AND created_at < {:to} AND (created_at, id) > ({:at}, {:id}) ORDER BY created_at, id LIMIT +{:limit}`,
		strings.Join(selected, ", "), t.table)).
		Bind(dbx.Params{"from": FormatInstant(from), "to": FormatInstant(to), "at": after.CreatedAt, "id": after.ID, "limit": limit}).Rows()
	if err != nil {
		return nil, wrap(err, "read %s", t.Name)
	}
	defer func() { _ = rows.Close() }() // read-only
	var page []WarehouseRow
	for rows.Next() {
		found := make([]sql.NullString, len(t.Columns)+2)
		into := make([]any, len(found))
		for i := range found {
			into[i] = &found[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, wrap(err, "read a row of %s", t.Name)
		}
		row := WarehouseRow{ID: found[0].String, CreatedAt: found[1].String, Values: make([]string, len(t.Columns))}
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

// fillBirthdays sets the opened birth dates. Unreadable patients have none.
func fillBirthdays(app core.App, t *WarehouseTable, rows []WarehouseRow) error {
	at := slices.IndexFunc(t.Columns, func(c WarehouseColumn) bool { return c.Shape == ShapeBirthYear })
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
