package collections_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

const patientID = "019bc1e0-0000-7000-8000-000000000001"

// storedPatient stores a patient without rules and reads it back.
func storedPatient(t *testing.T, app core.App) *core.Record {
	t.Helper()
	record, err := collections.NewRecord(app, collections.Patients)
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

// The dashboard reads a record as JSON, changes one member and sends all members back.
func TestPHIFieldRoundTrip(t *testing.T) {
	for name, test := range map[string]struct {
		damaged bool
		sent    any // replaces the value read
		kept    bool
	}{
		"as read":               {sent: "Lee", kept: true},
		"changed":               {sent: "Quill"},
		"damaged and null":      {damaged: true, sent: nil, kept: true},
		"damaged and emptied":   {damaged: true, sent: "", kept: true},
		"damaged, not replaced": {damaged: true, sent: "Quill", kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			app := vigiltest.NewApp(t)
			storedPatient(t, app)
			before := lastNameColumn(t, app)
			if test.damaged {
				before = before[:len(before)-4] + "AAAA"
				if _, err := app.DB().Update("patients", dbx.Params{"last_name": before}, nil).Execute(); err != nil {
					t.Fatal(err)
				}
			}
			record := findPatient(t, app)
			counted := collections.UnreadableValues()
			if err := collections.Readable(record); collections.IsUnreadable(err) != test.damaged {
				t.Errorf("readable: %v", err)
			}
			members := map[string]any{}
			if raw, err := json.Marshal(record); err != nil {
				t.Fatal(err)
			} else if err := json.Unmarshal(raw, &members); err != nil {
				t.Fatal(err)
			}
			members["last_name"], members["mrn"] = test.sent, "M-2"
			record.Load(members)
			for save, try := range map[string]func() error{
				"checked":   func() error { return app.Save(record) },
				"unchecked": func() error { return app.SaveNoValidate(record) },
				"past all":  func() error { return collections.Update(app, record, "last_name", "mrn") },
			} {
				if err := try(); (err != nil) != test.damaged {
					t.Errorf("%s: %v", save, err)
				}
			}
			if n := collections.UnreadableValues() - counted; test.damaged != (n == 1) || n > 1 { // checked, shown and saved three times
				t.Errorf("one value was counted %d times", n)
			}
			after := lastNameColumn(t, app)
			if kept := after == before; kept != test.kept {
				t.Errorf("the column is kept: %v, want %v", kept, test.kept)
			}
			if !strings.HasPrefix(after, "v2:") || strings.Contains(after, "Quill") {
				t.Errorf("the column holds %q", after)
			}
			want := "M-2"
			if test.damaged {
				want = "M-1"
			}
			if got := findPatient(t, app).GetString("mrn"); got != want {
				t.Errorf("the MRN is %q, want %q", got, want)
			}
		})
	}
}

// Updates of other columns succeed and leave an unreadable value unchanged.
func TestUnreadableValueIsKept(t *testing.T) {
	app := vigiltest.NewApp(t)
	storedPatient(t, app)
	if _, err := app.DB().Update("patients", dbx.Params{"last_name": "v1:lost:AAAAAAAAAAAAAAAA:AAAA"}, nil).Execute(); err != nil {
		t.Fatal(err)
	}
	record := findPatient(t, app)
	record.Set("mrn", "M-2")
	if err := collections.Update(app, record, "mrn"); err != nil {
		t.Error(err)
	}
	if err := app.SaveNoValidate(record); err != nil {
		t.Error(err)
	}
	if column := lastNameColumn(t, app); column != "v1:lost:AAAAAAAAAAAAAAAA:AAAA" || findPatient(t, app).GetString("mrn") != "M-2" {
		t.Errorf("the column holds %q", column)
	}
	err := collections.Readable(findPatient(t, app))
	refused, ok := errors.AsType[*collections.UnreadableError](err)
	if !ok || refused.Detail() != "A stored value of patient "+patientID+" cannot be opened; nothing was changed." || strings.Contains(err.Error(), "lost") {
		t.Errorf("%v", err)
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
			record, err := collections.NewRecord(app, collections.Observations)
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
