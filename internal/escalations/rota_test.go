package escalations_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/escalations"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loaded, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func anyUser(string) bool { return true }

// everyDay is a shift on each day of the week.
func everyDay(start, end, user string) (shifts []escalations.Shift) {
	for day := range 7 {
		shifts = append(shifts, escalations.Shift{Weekday: day, Start: start, End: end, User: user})
	}
	return shifts
}

func want(t *testing.T, r escalations.Rota, at, user, until string) {
	t.Helper()
	got := r.At(instant(t, at), anyUser)
	end := ""
	if !got.Until.IsZero() {
		end = got.Until.UTC().Format(time.RFC3339)
	}
	if got.User != user || end != until {
		t.Errorf("at %s %q until %s, want %q until %s", at, got.User, end, user, until)
	}
}

// Shifts follow the wall clock of the zone, on ordinary days and on days of clock changes.
func TestShifts(t *testing.T) {
	newYork := escalations.Rota{Zone: zone(t, "America/New_York"), Shifts: append(everyDay("07:00", "19:00", "day"), everyDay("19:00", "07:00", "night")...)}
	want(t, newYork, "2026-01-15T13:45:00Z", "day", "2026-01-16T00:00:00Z")
	want(t, newYork, "2026-01-16T00:00:00Z", "night", "2026-01-16T12:00:00Z")
	want(t, newYork, "2026-01-16T11:59:59Z", "night", "2026-01-16T12:00:00Z")
	want(t, newYork, "2026-03-08T05:30:00Z", "night", "2026-03-08T11:00:00Z") // the night of 11 hours
	want(t, newYork, "2026-03-08T11:00:00Z", "day", "2026-03-08T23:00:00Z")
	want(t, newYork, "2026-11-01T05:30:00Z", "night", "2026-11-01T12:00:00Z") // the night of 13 hours
	want(t, newYork, "2026-11-01T11:59:00Z", "night", "2026-11-01T12:00:00Z")

	// 02:30 does not come on 8 March: the clocks skip it at 07:00Z. On 1 November 01:30 comes twice, first at 05:30Z.
	early := escalations.Rota{Zone: zone(t, "America/New_York"), Shifts: append(everyDay("18:00", "02:30", "evening"), everyDay("02:30", "18:00", "morning")...)}
	want(t, early, "2026-03-08T06:59:59Z", "evening", "2026-03-08T07:00:00Z")
	want(t, early, "2026-03-08T07:00:00Z", "morning", "2026-03-08T22:00:00Z")
	twice := escalations.Rota{Zone: zone(t, "America/New_York"), Shifts: append(everyDay("18:00", "01:30", "evening"), everyDay("01:30", "18:00", "morning")...)}
	want(t, twice, "2026-11-01T05:29:59Z", "evening", "2026-11-01T05:30:00Z")
	want(t, twice, "2026-11-01T05:30:00Z", "morning", "2026-11-01T23:00:00Z")
	want(t, twice, "2026-11-01T06:15:00Z", "morning", "2026-11-01T23:00:00Z") // the clock shows 01:15 again

	// Lord Howe moves by half an hour: on 4 October 2026 from 02:00 to 02:30, on 5 April from 02:00 back to 01:30.
	howe := escalations.Rota{Zone: zone(t, "Australia/Lord_Howe"), Shifts: append(everyDay("20:00", "02:15", "first"), everyDay("02:15", "20:00", "second")...)}
	want(t, howe, "2026-10-03T15:29:59Z", "first", "2026-10-03T15:30:00Z")
	want(t, howe, "2026-10-03T15:30:00Z", "second", "2026-10-04T09:00:00Z")
	back := escalations.Rota{Zone: zone(t, "Australia/Lord_Howe"), Shifts: append(everyDay("20:00", "01:45", "first"), everyDay("01:45", "20:00", "second")...)}
	want(t, back, "2026-04-04T14:44:59Z", "first", "2026-04-04T14:45:00Z")
	want(t, back, "2026-04-04T15:10:00Z", "second", "2026-04-05T09:30:00Z") // it is 01:40 for the second time

	berlin := escalations.Rota{Zone: zone(t, "Europe/Berlin"), Shifts: everyDay("00:00", "00:00", "always")}
	want(t, berlin, "2026-03-28T23:30:00Z", "always", "2026-03-29T22:00:00Z") // a day of 23 hours
	want(t, berlin, "2026-10-24T22:00:00Z", "always", "2026-10-25T23:00:00Z") // and one of 25
}

// A single weekly shift: its weekday is in the zone and not in UTC, and Until is set while no one is on call.
func TestWeekday(t *testing.T) {
	monday := escalations.Rota{Zone: zone(t, "America/New_York"), Shifts: []escalations.Shift{{Weekday: 0, Start: "22:00", End: "06:00", User: "one"}}}
	want(t, monday, "2026-01-20T02:59:59Z", "", "2026-01-20T03:00:00Z") // Monday 21:59:59, already Tuesday in UTC
	want(t, monday, "2026-01-20T03:00:00Z", "one", "2026-01-20T11:00:00Z")
	want(t, monday, "2026-01-20T11:00:00Z", "", "2026-01-27T03:00:00Z")
	sunday := escalations.Rota{Zone: time.UTC, Shifts: []escalations.Shift{{Weekday: 6, Start: "08:00", End: "08:00", User: "one"}}}
	want(t, sunday, "2026-01-19T07:59:00Z", "one", "2026-01-19T08:00:00Z") // Monday morning
	want(t, escalations.Rota{Zone: time.UTC}, "2026-01-19T07:59:00Z", "", "")
	want(t, escalations.Rota{}, "2026-01-19T07:59:00Z", "", "")
}

// Overrides precede shifts, then a later start, then a later place in the list.
func TestOverrides(t *testing.T) {
	r := escalations.Rota{Zone: time.UTC, Shifts: everyDay("00:00", "00:00", "shift"), Overrides: []escalations.Override{
		{StartsAt: instant(t, "2026-01-15T08:00:00Z"), EndsAt: instant(t, "2026-01-15T20:00:00Z"), User: "long"},
		{StartsAt: instant(t, "2026-01-15T12:00:00Z"), EndsAt: instant(t, "2026-01-15T14:00:00Z"), User: "handed over"},
		{StartsAt: instant(t, "2026-01-15T12:00:00Z"), EndsAt: instant(t, "2026-01-15T13:00:00Z"), User: "and again"},
		{StartsAt: instant(t, "2026-01-15T06:00:00Z"), EndsAt: instant(t, "2026-01-15T21:00:00Z"), User: "longest"},
	}}
	want(t, r, "2026-01-15T05:00:00Z", "shift", "2026-01-15T06:00:00Z")
	want(t, r, "2026-01-15T06:00:00Z", "longest", "2026-01-15T08:00:00Z")
	want(t, r, "2026-01-15T08:00:00Z", "long", "2026-01-15T12:00:00Z")
	want(t, r, "2026-01-15T12:30:00Z", "and again", "2026-01-15T13:00:00Z")
	want(t, r, "2026-01-15T13:00:00Z", "handed over", "2026-01-15T14:00:00Z")
	want(t, r, "2026-01-15T14:00:00Z", "long", "2026-01-15T20:00:00Z")
	want(t, r, "2026-01-15T20:00:00Z", "longest", "2026-01-15T21:00:00Z")
	want(t, r, "2026-01-15T21:00:00Z", "shift", "2026-01-16T00:00:00Z")

	retracted := r.At(instant(t, "2026-01-15T12:30:00Z"), func(user string) bool { return user != "and again" })
	if retracted.User != "handed over" || !retracted.Until.Equal(instant(t, "2026-01-15T14:00:00Z")) {
		t.Errorf("who left is not passed over: %+v", retracted)
	}
	nobody := r.At(instant(t, "2026-01-15T12:30:00Z"), func(string) bool { return false })
	if nobody != (escalations.Duty{}) {
		t.Errorf("without a user: %+v", nobody)
	}
	far := escalations.Rota{Zone: time.UTC, Overrides: []escalations.Override{{StartsAt: instant(t, "2026-06-01T00:00:00Z"), EndsAt: instant(t, "2026-06-02T00:00:00Z"), User: "then"}}}
	want(t, far, "2026-01-15T00:00:00Z", "", "2026-06-01T00:00:00Z")
}

// Two shifts that share the day leave no minute of a year uncovered, in zones that change their clocks by an hour, by half an hour, at
// midnight, or never; and each turn lasts until its Until.
func TestAdjacentShiftsHaveNoGap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"America/New_York", "Australia/Lord_Howe", "Europe/Berlin", "Africa/Cairo", "America/Asuncion", "Asia/Kathmandu", "Pacific/Kiritimati", "UTC"} {
		place := zone(t, name)
		for range 6 {
			minute := random.IntN(24 * 60)
			change := fmt.Sprintf("%02d:%02d", minute/60, minute%60)
			other := fmt.Sprintf("%02d:%02d", (minute/60+1+random.IntN(22))%24, random.IntN(60))
			r := escalations.Rota{Zone: place, Shifts: append(everyDay(change, other, "one"), everyDay(other, change, "two")...)}
			for at := time.Date(2026, time.January, 1, 0, 0, 0, 0, place); at.Year() < 2027; {
				duty := r.At(at, anyUser)
				if duty.User == "" || !duty.Until.After(at) || duty.Until.Sub(at) > 26*time.Hour {
					t.Fatalf("%s, %s and %s: at %s %+v", name, change, other, at, duty)
				}
				if last := r.At(duty.Until.Add(-time.Microsecond), anyUser); last != duty {
					t.Fatalf("%s, %s and %s: at %s %+v, and at its end %+v", name, change, other, at, duty, last)
				}
				if next := r.At(duty.Until, anyUser); next.User == duty.User {
					t.Fatalf("%s, %s and %s: at %s the turn of %s does not end", name, change, other, duty.Until, duty.User)
				}
				at = duty.Until
			}
		}
	}
}
