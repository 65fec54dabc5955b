package collections_test

import (
	"fmt"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Each access to an unreadable value reports its record once, up to a bound.
func TestUnreadableIsReportedOnce(t *testing.T) {
	app := vigiltest.NewApp(t)
	storedPatient(t, app)
	if _, err := app.DB().Update("patients", dbx.Params{"last_name": "v1:lost:AAAAAAAAAAAAAAAA:AAAA"}, nil).Execute(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { collections.OnUnreadable(nil) })
	ways := map[string]func() error{
		"getter":  func() error { _ = findPatient(t, app).GetString("last_name"); return nil },
		"text":    func() error { _ = collections.TextOf(findPatient(t, app), "last_name"); return nil },
		"names":   func() error { _, err := collections.PatientNames(app, []string{patientID}); return err },
		"entries": func() error { _, err := collections.DirectoryEntries(app, []string{patientID}); return err },
		"checked": func() error { _ = collections.Readable(findPatient(t, app)); return nil },
	}
	for name, way := range ways {
		var named []string
		collections.OnUnreadable(func(collection, id string) { named = append(named, collection+" "+id) })
		for range 2 {
			counted := collections.UnreadableValues()
			if err := way(); err != nil {
				t.Fatal(err)
			}
			if n := collections.UnreadableValues() - counted; n != 1 {
				t.Errorf("%s: counted %d times", name, n)
			}
		}
		if len(named) != 1 || named[0] != "patients "+patientID {
			t.Errorf("%s: reported %v", name, named)
		}
	}

	reported := 0
	collections.OnUnreadable(func(string, string) { reported++ })
	for range 2 {
		for i := range 10_100 {
			if _, err := collections.OpenValue("v1:lost:AAAAAAAAAAAAAAAA:AAAA", collections.Patients, "last_name", fmt.Sprint(i)); err == nil {
				t.Fatal("it opens")
			}
		}
	}
	if reported != 10_000 {
		t.Errorf("reported %d records", reported)
	}
}
