package devices_test

import (
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/notifications"
)

func (f *fixture) checkMissed(since, now time.Time, want int) {
	f.Helper()
	f.now = now
	raised, err := f.engine.CheckMissed(f.Context(), f.app, since, now)
	f.ok(err)
	if raised != want {
		f.Errorf("%s to %s: %d missed days, want %d", since.Format(time.RFC3339), now.Format(time.RFC3339), raised, want)
	}
}

// A run of missed days in the patient's zone, across the change of clocks, with checks that run twice and late.
func TestMissedDays(t *testing.T) {
	w := newFixture(t)
	w.now = utc("2026-03-01T15:00:00Z")
	provider := newProvider(w, "dr@vigil.test")
	patient := w.patient(dbx.Params{"time_zone": "America/Los_Angeles", "primary_provider": provider})
	w.assign("S-1", patient, "scale", utc("2026-02-20T15:00:00Z")) // the patient has it already
	w.now = utc("2026-03-06T18:00:00Z")
	w.measure(patient, "S-1", 80, w.now, devices.GatewayReport{})

	quarter := 15 * time.Minute
	w.checkMissed(utc("2026-03-07T04:45:00Z"), utc("2026-03-07T05:00:00Z"), 0) // midnight in New York
	w.checkMissed(utc("2026-03-07T07:45:00Z"), utc("2026-03-07T08:00:00Z"), 0) // the 6th ends in Los Angeles: measured
	ends := []time.Time{utc("2026-03-08T08:00:00Z"), utc("2026-03-09T07:00:00Z"), utc("2026-03-10T07:00:00Z"), utc("2026-03-11T07:00:00Z")}
	w.checkMissed(ends[0].Add(-quarter), ends[0].Add(-time.Microsecond), 0)
	w.checkMissed(ends[0].Add(-quarter), ends[0], 1)
	w.checkMissed(ends[0].Add(-quarter), ends[0], 0) // the same check again
	w.checkMissed(ends[1].Add(-quarter), ends[1], 1) // a day of 23 hours
	w.wantCount("escalations", "TRUE", 0)
	w.checkMissed(ends[2].Add(-quarter), ends[2], 1)
	w.wantCount("escalations", "priority = 'urgent' AND created_by = 'system' AND assigned_to = 'dr@vigil.test'", 1)
	w.wantCount("announcements", "kind = '"+string(notifications.EscalationOpened)+"'", 1)
	w.wantCount("alerts", "escalation != ''", 1)
	w.checkMissed(ends[3].Add(-quarter), ends[3], 1)
	w.wantCount("escalations", "TRUE", 1)
	w.wantCount("announcements", "kind = '"+string(notifications.ReadingMissed)+"'", 4)
	w.wantAlerts("missed", repeat(4, "missed_reading no_data active")...)

	w.now = ends[3].Add(time.Hour)
	w.measure(patient, "S-1", 80, w.now, devices.GatewayReport{})
	w.wantAlerts("data came", repeat(4, "missed_reading no_data auto_resolved")...)
	w.checkMissed(ends[3].Add(-quarter), w.now, 0) // checked before, and the day has not ended

	// Down for four days: each day is checked, and the new run escalates again after the first one is closed.
	_, err := escalations.CancelOpen(w.app, patient, w.now)
	w.ok(err)
	w.checkMissed(ends[3], ends[3].AddDate(0, 0, 5), 4)
	w.wantCount("escalations", "TRUE", 2)
}

func TestMissedJoinsAnOpenEscalation(t *testing.T) {
	w := newFixture(t)
	patient := w.patient(nil)
	w.assign("S-1", patient, "scale", w.now.AddDate(0, 0, -10))
	w.ok(w.app.RunInTransaction(func(tx core.App) error {
		id, err := collections.NextID(tx, collections.Escalations)
		if err != nil {
			return err
		}
		return escalations.Decision{Open: escalations.Draft{PatientID: patient, Priority: escalations.Stat, Reason: "Systolic"}}.Write(tx, id, "", w.now)
	}))
	w.checkMissed(w.now.AddDate(0, 0, -3), w.now, 3)
	w.wantCount("escalations", "TRUE", 1)
	w.wantCount("escalations", "priority = 'stat'", 1)
}

func TestNothingMissedBeforeDeviceArrives(t *testing.T) {
	w := newFixture(t)
	shipped, archived := w.patient(nil), w.patient(nil)
	w.assign("S-1", shipped, "scale", time.Time{}) // 2026-01-15, expected on the 23rd
	w.assign("S-2", archived, "scale", w.now.AddDate(0, 0, -20))
	_, err := archivePatient(w, archived)
	w.ok(err)
	w.checkMissed(w.now, utc("2026-01-22T12:00:00Z"), 0)
	w.checkMissed(utc("2026-01-23T12:00:00Z"), utc("2026-01-24T12:00:00Z"), 0)
	w.checkMissed(utc("2026-01-24T12:00:00Z"), utc("2026-01-25T12:00:00Z"), 1)

	early := w.patient(nil)
	w.now = utc("2026-02-02T12:00:00Z")
	w.assign("S-3", early, "scale", time.Time{})
	w.now = utc("2026-02-03T12:00:00Z")
	w.measure(early, "S-3", 80, w.now, devices.GatewayReport{})
	w.checkMissed(utc("2026-02-04T12:00:00Z"), utc("2026-02-05T12:00:00Z"), 2) // it arrived early; the first patient missed too
}

func TestSilence(t *testing.T) {
	w := newFixture(t)
	patient := w.patient(dbx.Params{"monitoring_schedule": "{}"})
	w.assign("S-1", patient, "scale", w.now.AddDate(0, 0, -20))
	w.measure(patient, "S-1", 80, w.now, devices.GatewayReport{})
	last := w.now
	check := func(hours float64, flagged, raised int) {
		t.Helper()
		w.now = last.Add(time.Duration(hours * float64(time.Hour)))
		f, r, err := w.engine.CheckSilence(w.app, w.now)
		w.ok(err)
		if f != flagged || r != raised {
			t.Errorf("after %v h: %d flagged and %d raised, want %d and %d", hours, f, r, flagged, raised)
		}
	}
	check(24, 0, 0)
	check(24.25, 1, 1)
	check(24.5, 0, 0)
	w.wantAlerts("silent", "no_reading_24h no_data active")
	w.wantCount("announcements", "TRUE", 0)
	if d := w.device("S-1"); !d.Flagged() || d.GetString("flag_reason") != devices.FlagNoReading {
		t.Error("the device is not flagged")
	}
	w.handle(connected("S-1", w.now))
	w.wantAlerts("connected is no reading", "no_reading_24h no_data active")
	check(48.25, 0, 0)
	check(48.5, 0, 0)
	w.wantCount("announcements", "kind = 'device_alert_raised'", 1)

	w.measure(patient, "S-1", 80, w.now, devices.GatewayReport{})
	if w.device("S-1").Flagged() {
		t.Error("the device is still flagged")
	}
	w.wantAlerts("a reading came", "no_reading_24h no_data auto_resolved")
	check(49, 0, 0)

	// The next silence alerts again, unless there is a missed_reading alert.
	w.ok(w.app.RunInTransaction(func(tx core.App) error {
		_, err := tx.DB().Insert(collections.Alerts, dbx.Params{
			"id": collections.NumberID(99), "patient": patient, "type": "missed_reading", "level": "no_data", "status": "active",
			"created_at": collections.FormatInstant(w.now), "parameter": "2026-01-16",
		}).Execute()
		return err
	}))
	check(48.5+25, 1, 0)
	_, err := w.app.DB().Update(collections.Alerts, dbx.Params{"acknowledged": true}, dbx.HashExp{"type": "missed_reading"}).Execute()
	w.ok(err)
	check(48.5+26, 0, 1)
}

func TestStaleReadings(t *testing.T) {
	w := newFixture(t)
	patient := w.patient(nil)
	w.assign("S-1", patient, "scale", w.now.AddDate(0, 0, -30))
	start, since := w.now, time.Time{}
	day := func(n int, kg float64, want int) {
		t.Helper()
		w.now = start.AddDate(0, 0, n)
		w.measure(patient, "S-1", kg, w.now, devices.GatewayReport{})
		for _, want := range []int{want, 0} { // the second run finds nothing new
			_, raised, err := w.engine.CheckStale(w.Context(), w.app, since, w.now)
			w.ok(err)
			if raised != want {
				t.Errorf("day %d: %d raised, want %d", n, raised, want)
			}
		}
		since = w.now
	}
	for n := range 4 {
		day(n, 80, 0)
	}
	day(4, 80.04, 1)
	for n := 5; n < 20; n++ {
		day(n, 80, 0) // one run alerts once, however long
	}
	day(20, 81, 0)
	for n := 21; n < 25; n++ {
		day(n, 80, 0)
	}
	day(25, 80, 1)
	w.wantAlerts("stale", "stale_reading warning active", "stale_reading warning active")
	w.wantCount("announcements", "kind = 'device_alert_raised'", 2)

	// Old readings that are sent later do not count as stale now.
	other := w.patient(nil)
	for n := range 6 {
		w.measure(other, "S-2", 70, w.now.AddDate(0, -2, n), devices.GatewayReport{})
	}
	_, raised, err := w.engine.CheckStale(t.Context(), w.app, time.Time{}, w.now)
	w.ok(err)
	if raised != 0 {
		t.Errorf("%d raised for old readings", raised)
	}
}
