package patients_test

import (
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestAgeOn(t *testing.T) {
	for _, test := range []struct {
		born, on string
		want     int
	}{
		{"2008-03-10", "2026-03-09", 17},
		{"2008-03-10", "2026-03-10", 18},
		{"2008-12-31", "2026-01-01", 17},
		{"2008-02-29", "2026-02-28", 17},
		{"2008-02-29", "2026-03-01", 18},
		{"2008-02-29", "2028-02-29", 20},
		{"2026-01-15", "2026-01-15", 0},
		{"2026-01-16", "2026-01-15", 0}, // born today, farther east
		{"1926-01-15", "2026-01-15", 100},
	} {
		on, err := time.Parse(time.DateOnly, test.on)
		if err != nil {
			t.Fatal(err)
		}
		if age, found := collections.AgeOn(phi.Text(test.born), on.Year(), on.Month(), on.Day()); age != test.want || !found {
			t.Errorf("born %s, on %s: %d %v, want %d", test.born, test.on, age, found, test.want)
		}
	}
	if _, found := collections.AgeOn("no date", 2026, 1, 15); found {
		t.Error("no date has an age")
	}
}

func storedAgeGroup(t *testing.T, app core.App, id string) string {
	t.Helper()
	group, err := collections.AgeGroupOf(app, id)
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// The 18th birthday is in the patient's time zone, also across clock changes.
func TestAgeGroupOn18thBirthday(t *testing.T) {
	app := newPatientsApp(t)
	for _, test := range []struct{ zone, birthday, before, after string }{
		{"America/New_York", "2026-03-08", "2026-03-08T04:59:00Z", "2026-03-08T05:00:00Z"}, // the spring change comes two hours later
		{"America/New_York", "2026-03-09", "2026-03-09T03:59:00Z", "2026-03-09T04:00:00Z"},
		{"America/New_York", "2026-11-01", "2026-11-01T03:59:00Z", "2026-11-01T04:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-05", "2026-04-04T12:59:00Z", "2026-04-04T13:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-06", "2026-04-05T13:29:00Z", "2026-04-05T13:30:00Z"},
		{"Europe/Berlin", "2026-03-29", "2026-03-28T22:59:00Z", "2026-03-28T23:00:00Z"},
	} {
		birthday, _ := time.Parse(time.DateOnly, test.birthday)
		p := create(t, app, object{"date_of_birth": birthday.AddDate(-18, 0, 0).Format(time.DateOnly), "time_zone": test.zone})
		if group := storedAgeGroup(t, app, p.Id); group != collections.AgeMinor {
			t.Fatalf("%s: a new patient of 17 is %q", test.zone, group)
		}
		look := func(at, want string, changes int) {
			t.Helper()
			now, err := time.Parse(time.RFC3339, at)
			if err != nil {
				t.Fatal(err)
			}
			if _, changed, err := patients.UpdateAgeGroups(t.Context(), app, now, newYork); err != nil || changed != changes {
				t.Errorf("%s, at %s: %d changed, %v, want %d", test.zone, at, changed, err, changes)
			}
			if group := storedAgeGroup(t, app, p.Id); group != want {
				t.Errorf("%s, at %s: %q, want %q", test.zone, at, group, want)
			}
		}
		look(test.before, collections.AgeMinor, 0)
		look(test.after, collections.AgeAdult, 1)
		look(test.after, collections.AgeAdult, 0)
	}
}

// Patients without an age group, as after an upgrade, are checked once; changes are audited, which invalidates the ingest cache.
func TestAgeGroupsAfterUpgrade(t *testing.T) {
	app := newPatientsApp(t)
	child, adult := create(t, app, object{"date_of_birth": "2019-01-15"}), create(t, app, nil)
	for _, id := range []string{child.Id, adult.Id} {
		if err := collections.SetAgeGroup(app, id, collections.AgeUnknown); err != nil {
			t.Fatal(err)
		}
	}
	entries := func(id string) (n int) {
		t.Helper()
		if err := app.DB().Select("COUNT(*)").From(collections.AuditLog).Where(dbx.HashExp{"patient": id}).Row(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	children, adults := entries(child.Id), entries(adult.Id)
	checked, changed, err := patients.UpdateAgeGroups(t.Context(), app, vigiltest.Clock, newYork)
	if err != nil || checked != 2 || changed != 1 {
		t.Errorf("%d seen, %d changed, %v", checked, changed, err)
	}
	if storedAgeGroup(t, app, child.Id) != collections.AgeMinor || storedAgeGroup(t, app, adult.Id) != collections.AgeAdult {
		t.Error("the groups are not those of the ages")
	}
	if entries(child.Id) != children+1 || entries(adult.Id) != adults {
		t.Error("the trail has not what changed, or what did not")
	}
	if checked, _, err := patients.UpdateAgeGroups(t.Context(), app, vigiltest.Clock, newYork); err != nil || checked != 1 {
		t.Errorf("%d seen again, %v: adults are done with", checked, err)
	}
}
