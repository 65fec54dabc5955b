package escalations_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var rotaNow = vigiltest.Clock

func TestReadRotaBody(t *testing.T) {
	for text, want := range map[string]string{
		`{"time_zone":"America/New_York"}`:                 "",
		`{"time_zone":"UTC","shifts":null,"overrides":[]}`: "",
		`{}`: "time_zone",
		`{"time_zone":"Mars/Olympus","shifts":7}`:                                                                                  "shifts time_zone",
		`{"time_zone":"UTC","shifts":[7],"overrides":[null]}`:                                                                      "overrides.0 shifts.0",
		`{"time_zone":"UTC","shifts":[{}],"overrides":[{}]}`:                                                                       "overrides.0.ends_at overrides.0.starts_at overrides.0.user_id shifts.0.end shifts.0.start shifts.0.user_id shifts.0.weekday",
		`{"time_zone":"UTC","shifts":[{"weekday":7,"start":"7:00","end":"24:00","user_id":"3"}]}`:                                  "shifts.0.end shifts.0.start shifts.0.user_id shifts.0.weekday",
		`{"time_zone":"UTC","shifts":[{"weekday":-1,"start":"07:60","end":"07:00","user_id":3}]}`:                                  "shifts.0.start shifts.0.weekday",
		`{"time_zone":"UTC","overrides":[{"starts_at":"2026-01-15T08:00:00Z","ends_at":"2026-01-15T08:00:00Z","user_id":3}]}`:      "overrides.0.ends_at",
		`{"time_zone":"UTC","overrides":[{"starts_at":"2026-01-15T08:00:00Z","ends_at":"yesterday","user_id":3}]}`:                 "overrides.0.ends_at",
		`{"time_zone":"UTC","overrides":[{"starts_at":"2026-01-15T08:00:00+02:00","ends_at":"2026-01-15T08:00:00Z","user_id":3}]}`: "",
		`{"time_zone":"UTC","shifts":[` + strings.Repeat(`{},`, 200) + `{}]}`:                                                      "shifts",
	} {
		var body escalations.RotaBody
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			t.Fatal(err)
		}
		checks := validate.NewChecks()
		body.Read(checks)
		if got := strings.Join(slices.Sorted(maps.Keys(checks.Fields)), " "); got != want {
			t.Errorf("%.120s: %q is wrong, want %q", text, got, want)
		}
	}
}

func actor(user *collections.User) audit.Actor {
	return audit.User(user.Number(), user.Email(), user.Role(), audit.Origin{})
}

func set(t *testing.T, app *tests.TestApp, by *collections.User, draft escalations.RotaDraft) error {
	t.Helper()
	_, err := escalations.SetRota(app, draft, time.UTC, actor(by), rotaNow)
	return err
}

// The rota is replaced as a whole, audited, with eligible users; a user who leaves stays in it and is skipped.
func TestSetRota(t *testing.T) {
	app := vigiltest.NewApp(t)
	manager, nurse := vigiltest.User(t, app, authz.ClinicalManager), vigiltest.User(t, app, authz.Nurse)
	provider, ma := vigiltest.User(t, app, authz.Provider), vigiltest.User(t, app, authz.MA)
	if rota, err := escalations.ReadRota(app, time.UTC); err != nil || rota.Zone != time.UTC || len(rota.Shifts)+len(rota.Overrides) > 0 || !rota.UpdatedAt.IsZero() {
		t.Errorf("without a rota: %+v (%v)", rota, err)
	}
	if duty, err := escalations.OnCallNow(app, time.UTC, rotaNow); err != nil || duty != (escalations.Duty{}) {
		t.Errorf("no rota is set, and on call is %+v (%v)", duty, err)
	}
	draft := escalations.RotaDraft{TimeZone: "America/New_York", Shifts: everyDay("00:00", "00:00", nurse.Id), Overrides: []escalations.Override{
		{StartsAt: rotaNow, EndsAt: rotaNow.Add(time.Hour), User: provider.Id},
	}}
	before := vigiltest.RowCounts(t, app)
	for range 2 {
		if err := set(t, app, manager, draft); err != nil {
			t.Fatal(err)
		}
	}
	if added := vigiltest.RowsAdded(t, app, before); added[collections.OnCallRota] != 1 || added[collections.AuditLog] != 1 {
		t.Errorf("set twice, it adds %v", added)
	}
	rota, err := escalations.ReadRota(app, time.UTC)
	if err != nil || rota.Zone.String() != "America/New_York" || len(rota.Shifts) != 7 || rota.UpdatedBy != manager.Email() || !rota.UpdatedAt.Equal(rotaNow) {
		t.Errorf("stored: %+v (%v)", rota, err)
	}
	is := func(at time.Time, user string, until time.Time) {
		t.Helper()
		if duty, err := escalations.OnCallNow(app, time.UTC, at); err != nil || duty.User != user || !duty.Until.Equal(until) {
			t.Errorf("at %s %+v (%v)", at, duty, err)
		}
	}
	midnight := time.Date(2026, time.January, 16, 5, 0, 0, 0, time.UTC)
	is(rotaNow, provider.Id, rotaNow.Add(time.Hour))
	is(rotaNow.Add(time.Hour), nurse.Id, midnight)

	for _, user := range []string{ma.Id, collections.NumberID(999), ""} {
		other := escalations.RotaDraft{TimeZone: "UTC", Shifts: []escalations.Shift{{Start: "08:00", End: "09:00", User: user}}}
		if err := set(t, app, manager, other); vigiltest.Code(err) != "validation_error" {
			t.Errorf("with %q: %v", user, err)
		}
	}
	provider.SetActive(false)
	if err := app.Save(provider); err != nil {
		t.Fatal(err)
	}
	is(rotaNow, nurse.Id, midnight)
	draft.Overrides = append(draft.Overrides, escalations.Override{StartsAt: rotaNow, EndsAt: rotaNow.Add(2 * time.Hour), User: manager.Id})
	if err := set(t, app, manager, draft); err != nil {
		t.Errorf("a deactivated user prevents a hand-over: %v", err)
	}
	is(rotaNow, manager.Id, rotaNow.Add(2*time.Hour))
	people, err := escalations.RotaPeople(app, rota)
	if err != nil || len(people) != 2 || people[0].User != nurse.Id || !people[0].Active || people[1].Active || people[1].Name == "" {
		t.Errorf("in it are %d people (%v)", len(people), err)
	}
	var events []string
	if err := app.DB().NewQuery(`SELECT event || ' ' || actor_email FROM audit_log ORDER BY id`).Column(&events); err != nil {
		t.Fatal(err)
	}
	if events = slices.DeleteFunc(events, func(e string) bool { return !strings.HasPrefix(e, "on_call") }); len(events) != 2 || events[0] != "on_call.update "+manager.Email() {
		t.Errorf("recorded: %q", events)
	}
}
