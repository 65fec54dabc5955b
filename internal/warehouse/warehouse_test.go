package warehouse_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/warehouse"
)

// cell is a practice that exports into a bucket.
type cell struct {
	t       *testing.T
	app     *tests.TestApp
	bucket  *vigiltest.Bucket
	options warehouse.Options
	now     time.Time
	zone    *time.Location
	made    int
}

func newCell(t *testing.T, bucket *vigiltest.Bucket, name, format string) *cell {
	t.Helper()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	c := &cell{t: t, app: vigiltest.NewApp(t), bucket: bucket, now: vigiltest.Clock, zone: zone}
	c.options = warehouse.Options{
		Practice: name, Format: format, Zone: zone, Key: []byte("the key of " + name),
		Resources: fhirserver.ExportSource{Engine: &fhirserver.Engine{
			Systems: fhir.Systems{MRN: "https://vigil.example.org/mrn"}, Zone: zone, Directory: patients.NewDirectory(), PublicURL: "https://vigil.example.org",
		}},
		Open: func() (*backup.BlobStore, error) {
			return backup.OpenBucket(backup.BucketConfig{
				Name: bucket.Name, Region: "us-east-1", Endpoint: bucket.URL, AccessKey: vigiltest.BucketKey, Secret: "secret", ForcePathStyle: true, Prefix: "warehouse",
			})
		},
	}
	return c
}

func (c *cell) run() warehouse.Done {
	c.t.Helper()
	done, err := warehouse.New(c.options).Run(c.t.Context(), c.app, false, c.now)
	if err != nil {
		c.t.Fatal(err)
	}
	return done
}

// row inserts a row with the given creation and update time.
func (c *cell) row(table string, at time.Time, columns dbx.Params) string {
	c.t.Helper()
	c.made++
	id := fmt.Sprintf("%015d", c.made)
	if slices.Contains(collections.UUIDs, table) {
		id = collections.NewUUID()
	}
	row := dbx.Params{"id": id, "created_at": collections.FormatInstant(at)}
	if table != collections.Devices {
		row["updated_at"] = collections.FormatInstant(at)
	}
	maps.Copy(row, columns)
	if _, err := c.app.DB().Insert(table, row).Execute(); err != nil {
		c.t.Fatal(err)
	}
	return id
}

func (c *cell) reading(patient string, at time.Time, systolic, diastolic float64) string {
	c.t.Helper()
	return c.row(collections.Observations, at, dbx.Params{
		"patient": patient, "observation_type": "blood_pressure", "systolic": systolic, "diastolic": diastolic, "status": "final", "source": "api",
		"measured_at": collections.FormatInstant(at),
	})
}

func (c *cell) patient(at time.Time) string {
	c.t.Helper()
	c.made++
	return vigiltest.Patient(c.t, c.app, dbx.Params{"mrn": fmt.Sprintf("MRN-%s-%d", c.options.Practice, c.made), "created_at": collections.FormatInstant(at), "updated_at": collections.FormatInstant(at)})
}

// days returns the exported days of a table.
func (c *cell) days(table string) (days []string) {
	for _, key := range slices.Sorted(maps.Keys(c.bucket.Objects())) {
		if rest, ok := strings.CutPrefix(key, "warehouse/practice="+c.options.Practice+"/table="+table+"/date="); ok {
			day, _, _ := strings.Cut(rest, "/")
			days = append(days, day)
		}
	}
	return days
}

func (c *cell) wantDays(table string, want ...string) {
	c.t.Helper()
	if got := c.days(table); !slices.Equal(got, want) {
		c.t.Errorf("%s: %v, want %v", table, got, want)
	}
}

func (c *cell) file(table, day, name string) []byte {
	return c.bucket.Objects()["warehouse/practice="+c.options.Practice+"/table="+table+"/date="+day+"/"+name]
}

func (c *cell) lines(table, day string) [][]string {
	c.t.Helper()
	lines, err := csv.NewReader(bytes.NewReader(c.file(table, day, "rows.csv"))).ReadAll()
	if err != nil {
		c.t.Fatal(err)
	}
	return lines
}

func (c *cell) events() (events []string) {
	c.t.Helper()
	if err := c.app.DB().NewQuery(`SELECT event || ' ' || outcome FROM audit_log WHERE event LIKE 'warehouse%' ORDER BY id`).Column(&events); err != nil {
		c.t.Fatal(err)
	}
	return events
}

// A row is in the file of the practice's day on which it was created. Missed nights are exported later, and only a day with changed rows is written
// again, with the same content if nothing changed.
func TestRowsAreFiledByDay(t *testing.T) {
	c := newCell(t, vigiltest.NewBucket(t, "practice"), "elm-street", warehouse.CSV)
	person := c.patient(time.Date(2026, 1, 10, 15, 0, 0, 0, time.UTC))
	late := c.reading(person, time.Date(2026, 1, 12, 4, 59, 59, 0, time.UTC), 121, 81) // 23:59 of the 11th in New York
	c.reading(person, time.Date(2026, 1, 12, 5, 0, 0, 0, time.UTC), 122, 82)
	c.reading(person, c.now.Add(-3*time.Hour), 123, 83) // today, which has not ended
	if done := c.run(); done.Files != 3 || done.Rows != 3 {
		t.Errorf("%+v", done)
	}
	c.wantDays("patients", "2026-01-10")
	c.wantDays("observations", "2026-01-11", "2026-01-12")
	before := c.bucket.Objects()
	if done := c.run(); done.Files != 0 {
		t.Errorf("written again: %+v", done)
	}
	c.now = c.now.AddDate(0, 0, 3) // two missed nights
	c.reading(person, c.now.AddDate(0, 0, -1), 124, 84)
	if done := c.run(); done.Files != 2 {
		t.Errorf("made up for: %+v", done)
	}
	c.wantDays("observations", "2026-01-11", "2026-01-12", "2026-01-15", "2026-01-17")
	if _, err := c.app.DB().Update(collections.Observations, dbx.Params{"status": "entered_in_error", "updated_at": collections.FormatInstant(c.now)}, dbx.HashExp{"id": late}).Execute(); err != nil {
		t.Fatal(err)
	}
	c.now = c.now.AddDate(0, 0, 1)
	if done := c.run(); done.Files != 1 || done.Rows != 1 {
		t.Errorf("a change of a week ago: %+v", done)
	}
	if text := string(c.file("observations", "2026-01-11", "rows.csv")); !strings.Contains(text, "entered_in_error") {
		t.Error(text)
	}
	for key, content := range before {
		if after := c.bucket.Objects()[key]; !bytes.Equal(after, content) != (strings.Contains(key, "2026-01-11") || strings.Contains(key, "export.json")) {
			t.Errorf("%s is another: %s", key, after)
		}
	}
	first := c.file("observations", "2026-01-17", "rows.csv")
	day := time.Date(2026, 1, 17, 0, 0, 0, 0, c.zone)
	if done, err := warehouse.New(c.options).Day(t.Context(), c.app, day, c.now); err != nil || done.Files != 1 || !bytes.Equal(first, c.file("observations", "2026-01-17", "rows.csv")) {
		t.Errorf("one day: %+v, %v", done, err)
	}
	if _, err := warehouse.New(c.options).Day(t.Context(), c.app, collections.StartOfDay(c.now.In(c.zone)), c.now); !errors.Is(err, warehouse.ErrDayNotOver) {
		t.Errorf("today: %v", err)
	}
	if got := c.events(); len(got) != 5 || slices.ContainsFunc(got, func(event string) bool { return event != "warehouse.export 0" }) {
		t.Errorf("the trail: %v", got)
	}
}

// A refused export is returned and audited, and exports nothing permanently. Another format or other tables export every day again.
func TestFailedExportIsRepeated(t *testing.T) {
	c := newCell(t, vigiltest.NewBucket(t, "practice"), "elm-street", warehouse.CSV)
	person := c.patient(c.now.AddDate(0, 0, -3))
	c.reading(person, c.now.AddDate(0, 0, -2), 121, 81)
	c.bucket.SetRefusing(true)
	if _, err := warehouse.New(c.options).Run(t.Context(), c.app, false, c.now); err == nil || !strings.Contains(err.Error(), "does not permit this with the access key") {
		t.Errorf("a bucket that refuses: %v", err)
	}
	c.bucket.SetRefusing(false)
	if done := c.run(); done.Files != 2 {
		t.Errorf("after the refusal: %+v", done)
	}
	if got := strings.Join(c.events(), ", "); got != "warehouse.export 8, warehouse.export 0" {
		t.Errorf("the trail: %s", got)
	}
	c.options.Format, c.options.Tables = warehouse.Parquet, []string{"observations"}
	if done := c.run(); done.Files != 1 || c.file("observations", "2026-01-13", "rows.parquet") == nil {
		t.Errorf("in another format: %+v, %v", done, c.days("observations"))
	}
}

// A day with more rows than one page is complete, with each row once.
func TestDayOfSeveralPages(t *testing.T) {
	const rows = 2345
	for _, format := range []string{warehouse.CSV, warehouse.Parquet} {
		c := newCell(t, vigiltest.NewBucket(t, "practice"), "elm-street", format)
		at := time.Date(2026, 1, 12, 15, 0, 0, 0, time.UTC)
		person := c.patient(at)
		for i := range rows {
			c.reading(person, at.Add(time.Duration(i/10)*time.Second), 120, 80) // ten with the same time
		}
		if done := c.run(); done.Rows != rows+1 {
			t.Errorf("%s: %+v", format, done)
		}
		if format == warehouse.CSV {
			ids := map[string]bool{}
			for _, line := range c.lines("observations", "2026-01-12")[1:] {
				ids[line[0]] = true
			}
			if len(ids) != rows {
				t.Errorf("%d different rows", len(ids))
			}
			continue
		}
		content := c.file("observations", "2026-01-12", "rows.parquet")
		file, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
		if err != nil || file.NumRows() != rows {
			t.Errorf("%d rows, %v", file.NumRows(), err)
		}
	}
}

// The exported columns follow the declared reading kinds in this order, which readers of the files depend on.
func TestColumnsOfReadings(t *testing.T) {
	want := []string{
		"id", "patient_id", "type", "device_id", "measured_at", "received_at",
		"systolic", "diastolic", "pulse", "weight_kg", "spo2", "perfusion_index", "glucose_mg_dl", "temperature_c",
		"comparator", "irregular_heartbeat", "meal_context", "source", "origin", "status", "review_state", "updated_at",
	}
	for _, table := range warehouse.Tables() {
		if table.Name != "observations" {
			continue
		}
		var got []string
		for _, column := range table.Columns {
			got = append(got, column.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		return
	}
	t.Error("readings do not leave")
}

// The settings accept every existing table.
func TestTablesOfTheSettings(t *testing.T) {
	var tables, resources []string
	for _, table := range warehouse.Tables() {
		tables = append(tables, table.Name)
		if table.Resource != "" {
			resources = append(resources, table.Name)
		}
	}
	if !slices.Equal(tables, config.WarehouseTables) || !slices.Equal(resources, config.WarehouseResources) {
		t.Errorf("%v, %v", tables, resources)
	}
}

// mark is the text that must not be exported.
const mark = "ZEBRA-7731"

// No format exports an identity: no name, number, text or internal id, and only the year of a birthday.
func TestExportsContainNoIdentities(t *testing.T) {
	for _, format := range []string{warehouse.CSV, warehouse.Parquet, warehouse.FHIR} {
		c := newCell(t, vigiltest.NewBucket(t, "practice"), "elm-street", format)
		at := time.Date(2026, 1, 12, 15, 0, 0, 0, time.UTC)
		stamp := collections.FormatInstant(at)
		person := vigiltest.Patient(t, c.app, dbx.Params{
			"first_name": mark, "last_name": mark, "mrn": mark, "external_id": mark, "gateway_patient_id": mark, "email": mark + "@example.org", "phone": "+1 555 " + mark,
			"ssn": mark, "date_of_birth": "1931-12-10", "archive_reason": mark, "insurance_member_id": mark, "created_at": stamp, "updated_at": stamp,
		})
		secrets := []string{mark, person, "1931-12"}
		for _, table := range warehouse.Tables() {
			if table.Name == "patients" {
				continue
			}
			secrets = append(secrets, c.marked(table.Name, person, stamp))
		}
		if done := c.run(); done.Rows != map[string]int{warehouse.CSV: 8, warehouse.Parquet: 8, warehouse.FHIR: 4}[format] {
			t.Errorf("%s: %+v", format, done)
		}
		for key, content := range c.bucket.Objects() {
			for _, secret := range secrets {
				if bytes.Contains(content, []byte(secret)) {
					t.Errorf("%s has %q: %s", key, secret, content)
				}
			}
		}
		if format == warehouse.CSV {
			if line := c.lines("patients", "2026-01-12")[1]; len(line[0]) != 32 || line[1] != "1936" { // patients of 90 and older are one age group
				t.Errorf("the patient is %v", line)
			}
		}
		if format == warehouse.FHIR {
			c.wantResources()
			continue
		}
	}
}

// marked stores a record with the mark in every free-text field and returns its id.
func (c *cell) marked(table, person, at string) string {
	c.t.Helper()
	record, err := collections.NewRecord(c.app, table)
	if err != nil {
		c.t.Fatal(err)
	}
	c.made++
	record.Id = fmt.Sprintf("%015d", 773100+c.made)
	if slices.Contains(collections.UUIDs, table) {
		record.Id = collections.NewUUID()
	}
	for _, field := range record.Collection().Fields {
		if field.Type() == "phi" {
			record.Set(field.GetName(), mark)
		}
	}
	choices := func(name string) {
		if field, ok := record.Collection().Fields.GetByName(name).(*core.SelectField); ok {
			record.Set(name, field.Values[0])
		}
	}
	for _, name := range []string{"observation_type", "source", "status", "level", "priority", "category", "lifecycle_status", "kind"} {
		choices(name)
	}
	record.Load(map[string]any{
		"patient": person, "created_at": at, "updated_at": at, "started_at": at, "measured_at": at, "device_id": mark, "gateway_key": mark, "reading_key": mark,
		"claim_id": mark, "claim_control_number": mark, "serial_number": mark, "udi": mark, "hub_id": mark, "systolic": 120, "diastolic": 80, "type": "critical_low",
		"weight_kg": 80, "cpt_code": "99454", "service_date": "2026-01-12",
	})
	if table == collections.TimeEntries {
		record.Set("user", vigiltest.User(c.t, c.app, "nurse").Id)
	}
	if err := c.app.SaveNoValidate(record); err != nil {
		c.t.Fatalf("%s: %v", table, err)
	}
	return record.Id
}

// wantResources checks that references use pseudonyms.
func (c *cell) wantResources() {
	c.t.Helper()
	type named struct {
		ID, ResourceType, BirthDate string
		Subject                     struct{ Reference string }
	}
	read := func(table string) (r named) {
		if err := json.Unmarshal(c.file(table, "2026-01-12", "rows.ndjson"), &r); err != nil {
			c.t.Errorf("%s: %v", table, err)
		}
		return r
	}
	person, reading, flag := read("patients"), read("observations"), read("alerts")
	if person.ResourceType != "Patient" || len(person.ID) != 32 || person.BirthDate != "1936" || reading.Subject.Reference != "Patient/"+person.ID ||
		flag.Subject.Reference != "Patient/"+person.ID {
		c.t.Errorf("%+v, %+v, %+v", person, reading, flag)
	}
}
