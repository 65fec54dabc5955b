package collections_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

const patientID = "019bc1e0-0000-7000-8000-000000000001"

// storedPatient is a patient as the database has it, stored without any rule.
func storedPatient(t *testing.T, app core.App) *core.Record {
	t.Helper()
	record, err := collections.New(app, collections.Patients)
	if err != nil {
		t.Fatal(err)
	}
	for field, value := range map[string]any{"id": patientID, "first_name": "Ann", "last_name": "Lee", "date_of_birth": "1950-01-02", "gender": "female", "mrn": "M-1"} {
		record.Set(field, value)
	}
	if err := app.Save(record); err != nil {
		t.Fatal(err)
	}
	return findPatient(t, app)
}

func findPatient(t *testing.T, app core.App) *core.Record {
	t.Helper()
	record, err := app.FindRecordById(collections.Patients, patientID)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func lastNameColumn(t *testing.T, app core.App) (column string) {
	t.Helper()
	if err := app.DB().NewQuery("SELECT last_name FROM patients").Row(&column); err != nil {
		t.Fatal(err)
	}
	return column
}

// What the dashboard does: it reads a record as JSON, changes one member and sends all of them back.
func TestPHIFieldSentBackWhole(t *testing.T) {
	damage := func(column string) string { return column[:len(column)-4] + "AAAA" }
	for name, test := range map[string]struct {
		stored  func(column string) string
		sent    any // instead of what was read
		kept    bool
		lastNow any
	}{
		"as read":             {sent: "Lee", kept: true, lastNow: "Lee"},
		"changed":             {sent: "Quill", lastNow: "Quill"},
		"damaged and as read": {stored: damage, sent: nil, kept: true, lastNow: nil},
		"damaged, replaced":   {stored: damage, sent: "Quill", lastNow: "Quill"},
	} {
		t.Run(name, func(t *testing.T) {
			app := vigiltest.NewApp(t)
			storedPatient(t, app)
			before := lastNameColumn(t, app)
			if test.stored != nil {
				before = test.stored(before)
				if _, err := app.DB().Update("patients", dbx.Params{"last_name": before}, nil).Execute(); err != nil {
					t.Fatal(err)
				}
			}
			record := findPatient(t, app)
			members := map[string]any{}
			if raw, err := json.Marshal(record); err != nil {
				t.Fatal(err)
			} else if err := json.Unmarshal(raw, &members); err != nil {
				t.Fatal(err)
			}
			members["last_name"], members["mrn"] = test.sent, "M-2"
			record.Load(members)
			if err := app.Save(record); err != nil {
				t.Fatal(err)
			}

			after := lastNameColumn(t, app)
			if kept := after == before; kept != test.kept {
				t.Errorf("the column is kept: %v, want %v", kept, test.kept)
			}
			if !strings.HasPrefix(after, "v2:") || strings.Contains(after, "Quill") {
				t.Errorf("the column holds %q", after)
			}
			now := findPatient(t, app)
			if got := now.Get("last_name"); got != test.lastNow {
				t.Errorf("the last name reads as %v, want %v", got, test.lastNow)
			}
			if got := now.GetString("mrn"); got != "M-2" {
				t.Errorf("the other change is lost: %q", got)
			}
		})
	}
}

func TestOptionalNumberField(t *testing.T) {
	app := vigiltest.NewApp(t)
	for name, test := range map[string]struct {
		set  any
		want *float64
	}{
		"absent":        {nil, nil},
		"emptied input": {"", nil},
		"zero":          {0, new(0.0)},
		"number":        {61.5, new(61.5)},
		"text":          {"61.5", new(61.5)},
		"no number":     {"fast", nil},
	} {
		t.Run(name, func(t *testing.T) {
			record, err := collections.New(app, collections.Observations)
			if err != nil {
				t.Fatal(err)
			}
			record.Set("pulse", test.set)
			got := collections.Optional(record, "pulse")
			if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("pulse is %v, want %v", got, test.want)
			}
		})
	}
}
