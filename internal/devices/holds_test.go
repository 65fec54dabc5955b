package devices_test

import (
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/validate"
)

func (f *fixture) hold(patient, until string) {
	f.Helper()
	p, err := collections.FindPatient(f.app, patient)
	f.ok(err)
	checks := validate.NewChecks()
	draft := patients.HoldBody{Reason: validate.Of("hospital"), Until: validate.Of(until)}.
		Read(checks, f.now, collections.Zone(p.TimeZone(), zone(f.T, "America/New_York")))
	f.ok(checks.Err())
	_, err = patients.SetHold(f.app, patient, draft, nurse, f.now)
	f.ok(err)
}

// The days of a hold are not missed in the patient's zone, nothing is alerted while it is in force, and the run of missed days starts again.
func TestMissedDaysAndHold(t *testing.T) {
	for name, place := range map[string]string{"Los Angeles": "America/Los_Angeles", "New York": "America/New_York", "Auckland": "Pacific/Auckland"} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			local := func(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, zone(t, place)) }
			w.now = local(1, 12)
			patient := w.patient(dbx.Params{"time_zone": place})
			w.assign("S-1", patient, "scale", local(1, 12).AddDate(0, 0, -9))
			nights := func(from, to, want int) {
				t.Helper()
				for day := from; day <= to; day++ {
					w.now = local(day+1, 1)
					raised, err := w.engine.CheckMissed(t.Context(), w.app, local(day, 1), w.now)
					w.ok(err)
					want -= raised
				}
				if want != 0 {
					t.Errorf("days %d to %d: %d too few missed days", from, to, want)
				}
			}
			nights(2, 3, 2) // the third missed day would open an escalation
			w.now = local(4, 15)
			w.hold(patient, "2026-03-10")
			w.wantCount("alerts", "status = 'resolved' AND resolution_reason = 'patient_hold'", 2)
			nights(4, 10, 0)
			w.now = local(11, 0).Add(time.Minute)
			ended, err := patients.EndDueHolds(t.Context(), w.app, w.now)
			w.ok(err)
			if p, _ := collections.FindPatient(w.app, patient); ended != 1 || !p.Hold().EndedAt.Equal(local(11, 0)) {
				t.Errorf("%d ended; the hold is %v", ended, p.Hold())
			}
			nights(11, 12, 2)
			w.wantCount("escalations", "TRUE", 0)
			nights(13, 13, 1)
			w.wantCount("escalations", "priority = 'urgent'", 1)

			w.now = local(14, 10) // the hold answers the escalation that no one took
			w.hold(patient, "2026-03-14")
			w.wantCount("escalations", "status = 'cancelled'", 1)
			w.now = local(14, 12)
			_, err = patients.EndHold(w.app, patient, nurse, w.now)
			w.ok(err)
			nights(14, 14, 0) // a day of which a part was a hold
			nights(15, 15, 1)
		})
	}
}

// A downtime over the end of a hold alerts only about the days after it.
func TestMissedDaysAfterDowntimeWithHold(t *testing.T) {
	w := newFixture(t)
	patient := w.patient(nil)
	w.assign("S-1", patient, "scale", w.now.AddDate(0, 0, -20))
	w.hold(patient, "2026-01-17")
	w.checkMissed(w.now, w.now.AddDate(0, 0, 5), 2) // the 18th and 19th
	w.wantCount("alerts", "parameter IN ('2026-01-18', '2026-01-19')", 2)
}

func TestSilenceAndHold(t *testing.T) {
	w := newFixture(t)
	patient := w.patient(dbx.Params{"monitoring_schedule": "{}"})
	w.assign("S-1", patient, "scale", w.now.AddDate(0, 0, -20))
	w.measure(patient, "S-1", 80, w.now, devices.GatewayReport{})
	start := w.now
	check := func(hours float64, raised int) {
		t.Helper()
		w.now = start.Add(time.Duration(hours * float64(time.Hour)))
		_, r, err := w.engine.CheckSilence(w.app, w.now)
		w.ok(err)
		if r != raised {
			t.Errorf("after %v h: %d raised, want %d", hours, r, raised)
		}
	}
	check(25, 1)
	w.hold(patient, collections.FormatInstant(start.Add(100*time.Hour)))
	w.wantAlerts("on hold", "no_reading_24h no_data resolved")
	for hours := 26.0; hours < 124; hours += 7 {
		check(hours, 0)
	}
	if w.device("S-1").Flagged() {
		t.Error("a device is flagged as silent during a hold")
	}
	w.wantCount("announcements", "kind = 'device_alert_raised'", 0)
	check(124.25, 1)
	check(148.25, 0)
	w.wantCount("announcements", "kind = 'device_alert_raised'", 1)
}

func TestHubOfPatientOnHold(t *testing.T) {
	w := newFixture(t)
	patient := w.patient(nil)
	w.assign("S-1", patient, "scale", w.now.AddDate(0, 0, -20))
	w.ok(w.app.RunInTransaction(func(tx core.App) error {
		_, err := tx.DB().NewQuery(`UPDATE devices SET hub_id = 'H-1'`).Execute()
		if err != nil {
			return err
		}
		return collections.StoreHub(tx, collections.Hub{
			HubID: "H-1", Status: collections.HubOnline, LastSeenAt: collections.FormatInstant(w.now), LastHeartbeatAt: collections.FormatInstant(w.now),
		}, w.now)
	}))
	w.hold(patient, "2026-01-17")
	silent, err := devices.CheckHubs(w.app, w.now.Add(-time.Hour), w.now.Add(time.Hour))
	w.ok(err)
	if silent != 1 || w.count("alerts", "TRUE") != 0 {
		t.Errorf("%d silent hubs, %d alerts", silent, w.count("alerts", "TRUE"))
	}
}
