package collections_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"pgregory.net/rapid"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var now = vigiltest.Clock

func insert(t *testing.T, app core.App, collection string, row dbx.Params) {
	t.Helper()
	if _, err := app.DB().Insert(collection, row).Execute(); err != nil {
		t.Fatal(err)
	}
}

// Stored text sorts like the numbers and times.
func TestStoredOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Range(1, 999_999_999_999_999).Draw(t, "a"), rapid.Int64Range(1, 999_999_999_999_999).Draw(t, "b")
		if (a < b) != (collections.NumberID(a) < collections.NumberID(b)) || collections.Number(collections.NumberID(a)) != a {
			t.Fatalf("%s, %s", collections.NumberID(a), collections.NumberID(b))
		}
		moment := func(label string) time.Time {
			return time.UnixMicro(rapid.Int64Range(0, 4_000_000_000_000_000).Draw(t, label))
		}
		x, y := moment("x"), moment("y")
		if x.Before(y) != (collections.FormatInstant(x) < collections.FormatInstant(y)) || !collections.ParseInstant(collections.FormatInstant(x)).Equal(x) {
			t.Fatalf("%s, %s", collections.FormatInstant(x), collections.FormatInstant(y))
		}
	})
	for _, id := range []string{"", "1", "00000000000000x", "0194c5a8-0000-7000-8000-000000000001"} {
		if n := collections.Number(id); n != 0 {
			t.Errorf("%q is the number %d", id, n)
		}
	}
	if collections.FormatInstant(time.Time{}) != "" || !collections.ParseInstant("").IsZero() || !collections.ParseInstant("2026-01-15").IsZero() {
		t.Error("no time is no text")
	}
}

func TestNumbers(t *testing.T) {
	app := vigiltest.NewApp(t)
	taken := func(id string) bool {
		taken, err := collections.IsIssued(app, collections.Alerts, id)
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	if taken(collections.NumberID(1)) {
		t.Error("taken before any was given out")
	}
	for n := range int64(3) {
		if id, err := collections.NextID(app, collections.Alerts); err != nil || id != collections.NumberID(n+1) {
			t.Errorf("%s (%v)", id, err)
		}
	}
	for id, want := range map[string]bool{collections.NumberID(1): true, collections.NumberID(3): true, collections.NumberID(4): false, "": false, "x": false} {
		if taken(id) != want {
			t.Errorf("%q taken: %t", id, !want)
		}
	}
	if first, err := collections.NextID(app, collections.Escalations); err != nil || first != collections.NumberID(1) {
		t.Errorf("%s (%v)", first, err)
	}
}

// A transaction with a statement cache behaves like one without.
func TestWithStatementCache(t *testing.T) {
	app := vigiltest.NewApp(t)
	err := app.RunInTransaction(func(tx core.App) error {
		tx = collections.WithStatementCache(tx)
		if !tx.IsTransactional() {
			t.Error("not a transaction any more")
		}
		for range 3 {
			if _, err := collections.NextValue(tx, "test"); err != nil {
				return err
			}
		}
		return tx.RunInTransaction(func(inner core.App) error {
			value, err := collections.NextValue(inner, "test")
			if value != 4 {
				t.Errorf("value %d", value)
			}
			var missing string
			read := func(name string) error {
				return inner.DB().NewQuery("SELECT name FROM sequences WHERE name = {:name}").Bind(dbx.Params{"name": name}).Row(&missing)
			}
			if err := read("nothing"); !collections.IsNotFound(err) {
				t.Errorf("%v", err)
			}
			if err := read("test"); err != nil || missing != "test" {
				t.Errorf("%q (%v)", missing, err)
			}
			for range 2 {
				if _, err := inner.DB().NewQuery("SELECT nonsense FROM sequences").Execute(); err == nil {
					t.Error("an invalid statement was accepted")
				}
			}
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if value, err := collections.NextValue(app, "test"); value != 5 || err != nil {
		t.Errorf("after the commit: %d (%v)", value, err)
	}
}

// The statement cache survives transactions, including failed ones.
func TestStatementCacheReuse(t *testing.T) {
	app := vigiltest.NewApp(t)
	var statements collections.StatementCache
	broken := errors.New("broken")
	for i, failure := range []error{nil, broken, nil, nil} {
		err := app.RunInTransaction(func(tx core.App) error {
			tx = statements.In(tx)
			if again := statements.In(tx); again != tx {
				t.Error("wrapped twice")
			}
			for range 2 {
				if _, err := collections.NextValue(tx, "test"); err != nil {
					return err
				}
			}
			return failure
		})
		if !errors.Is(err, failure) {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	if value, err := collections.NextValue(app, "test"); value != 7 || err != nil {
		t.Errorf("after three commits: %d (%v)", value, err)
	}
	if statements.In(app) != core.App(app) {
		t.Error("an app outside a transaction was wrapped")
	}
}

func TestDeviceHolder(t *testing.T) {
	app := vigiltest.NewApp(t)
	at := func(hours int) time.Time { return now.Add(time.Duration(hours) * time.Hour) }
	insert(t, app, collections.DeviceAssignments, dbx.Params{
		"device_id": "D", "patient": "p1", "assigned_at": collections.FormatInstant(at(0)),
		"unassigned_at": collections.FormatInstant(at(2)),
	})
	insert(t, app, collections.DeviceAssignments, dbx.Params{"device_id": "D", "patient": "p2", "assigned_at": collections.FormatInstant(at(3))})
	for when, want := range map[time.Time]string{at(0).Add(-1000): "", at(0): "p1", at(2).Add(-1000): "p1", at(2): "", at(3): "p2", at(9999): "p2"} {
		if got, err := collections.DeviceHolder(app, "D", when); got != want || err != nil {
			t.Errorf("at %s: %q (%v), want %q", when, got, err, want)
		}
	}
	if got, err := collections.DeviceHolder(app, "E", at(1)); got != "" || err != nil {
		t.Errorf("%q (%v)", got, err)
	}
}

func TestOnCareTeam(t *testing.T) {
	app := vigiltest.NewApp(t)
	for _, p := range []dbx.Params{{"id": "member", "mrn": "1"}, {"id": "provider", "mrn": "2", "primary_provider": "u1"}, {"id": "neither", "mrn": "3", "primary_provider": "u2"}} {
		insert(t, app, collections.Patients, p)
		insert(t, app, collections.TriageScores, dbx.Params{"patient": p["id"]})
	}
	insert(t, app, collections.CareTeamMembers, dbx.Params{"patient": "member", "user": "u1"})
	var mine []string
	err := app.DB().Select("patient").From(collections.TriageScores).Where(collections.OnCareTeam("patient", "u1")).OrderBy("patient").Column(&mine)
	if err != nil || !slices.Equal(mine, []string{"member", "provider"}) {
		t.Errorf("%v (%v)", mine, err)
	}
	var all int
	if err := app.DB().Select("COUNT(*)").From(collections.TriageScores).Where(collections.AllOf(nil)).Row(&all); err != nil || all != 3 {
		t.Errorf("%d (%v)", all, err)
	}
}

func TestJobRuns(t *testing.T) {
	app := vigiltest.NewApp(t)
	id, ok, err := collections.StartJob(app, "billing", now)
	if id == "" || !ok || err != nil {
		t.Fatal(id, ok, err)
	}
	if id, ok, err := collections.StartJob(app, "billing", now); id != "" || ok || err != nil {
		t.Errorf("a second run at the same time: %q %t (%v)", id, ok, err)
	}
	if _, ok, err := collections.StartJob(app, "digest", now); !ok || err != nil {
		t.Errorf("another job: %t (%v)", ok, err)
	}
	if err := collections.FinishJob(app, id, map[string]int{"made": 2}, "", now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := collections.StartJob(app, "billing", now.Add(time.Hour)); !ok || err != nil {
		t.Errorf("again: %t (%v)", ok, err)
	}
	if err := collections.AbandonJobs(app, now.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	var runs []string
	err = app.DB().NewQuery("SELECT job || ' ' || status || ' ' || error || ' ' || finished_at FROM job_runs ORDER BY rowid").Column(&runs)
	want := []string{
		"billing succeeded  " + collections.FormatInstant(now.Add(time.Minute)),
		"digest failed the process ended " + collections.FormatInstant(now.Add(2*time.Hour)), "billing failed the process ended " + collections.FormatInstant(now.Add(2*time.Hour)),
	}
	if !slices.Equal(runs, want) || err != nil {
		t.Errorf("%q (%v)", runs, err)
	}
}

func TestResetTokens(t *testing.T) {
	app := vigiltest.NewApp(t)
	add := func(user, hash string) {
		if err := collections.AddResetToken(app, user, hash, "reset", now, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	use := func(hash string, at time.Time) string {
		user, err := collections.UseResetToken(app, hash, at)
		if err != nil && !collections.IsNotFound(err) {
			t.Fatal(err)
		}
		return user
	}
	add("u1", "first")
	add("u1", "second")
	add("u2", "other")
	if use("first", now) != "" {
		t.Error("a new link leaves the earlier one working")
	}
	if use("second", now.Add(time.Hour)) != "" {
		t.Error("a link works past its end")
	}
	if use("second", now.Add(time.Hour-time.Microsecond)) != "u1" || use("second", now) != "" {
		t.Error("a link works exactly once")
	}
	if use("other", now) != "u2" || use("unknown", now) != "" {
		t.Error("links of others")
	}
}
