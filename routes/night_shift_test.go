package routes_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/routes"
)

// nightShift is a clinic with a patient, a writer, the minute jobs, and staff with phones that receive pushes.
type nightShift struct {
	*clinic
	readings   *ingest.ReadingStore
	dispatcher *notifications.Dispatcher
	pipeline   *ingest.Pipeline
	patient    string
}

// newNightShift sets how long the practice holds an escalation until a severe blood pressure is confirmed. The patient's
// care team is the nurse. Each warning is pushed, unless choice is another.
func newNightShift(t *testing.T, confirm time.Duration, choice ...alerts.WarningPush) *nightShift {
	t.Helper()
	return newNightShiftWithRules(t, ingest.Rules{
		PracticeZone: newYork, AutoTransform: true, MaxFuture: 5 * time.Minute, ConfirmReadings: confirm, LateAfter: 24 * time.Hour,
		NormalReadingsNeeded: alerts.NormalReadingsRequired{Warning: 1, Critical: 2}, IrregularHeartbeats: 3,
		Suspect: vitals.Tolerance{Percent: 10, Amount: 10}, WarningPush: append(choice, alerts.PushEach)[0],
	})
}

func newNightShiftWithRules(t *testing.T, rules ingest.Rules) *nightShift {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	w := &nightShift{readings: ingest.NewReadingStore(rules)}
	now := func() time.Time { return w.now }
	writer := ingest.NewWriter(w.readings, now, quiet, func([]ingest.Outcome) {})
	w.clinic = newIngestingClinic(t, func(e *routes.Engines) {
		e.ReadingStore, e.Writer, e.Push = w.readings, writer, notifications.NewPush(notifications.PushOptions{})
		w.pipeline = ingest.NewPipeline(ingest.PipelineOptions{
			Adapters: gateway.NewAdapters(gatewaySettings, e.MaxFuture), Readings: w.readings, Writer: writer, Devices: e.Devices, Log: quiet,
		})
		e.IngestPipeline = w.pipeline
	})
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { writer.Run(ctx, w.app) })
	for !writer.Alive(w.now, time.Hour) {
		runtime.Gosched()
	}
	t.Cleanup(func() { cancel(); run.Wait() })
	w.dispatcher = notifications.NewDispatcher(notifications.DispatcherOptions{
		Push: notifications.NewPush(notifications.PushOptions{}), Zone: newYork, Clock: now, Log: quiet, NeverPushWarnings: rules.WarningPush == alerts.PushNever,
	})
	w.patient = w.enroll(object{"gateway_patient_id": "GW-1", "phone": "555-731-9042"})
	w.request(authz.Admin, "PUT", "/patients/"+w.patient+"/care-team/", object{"members": []object{{"user_id": w.people[authz.Nurse].Number()}}}).want(200)
	w.registerPhone(w.people[authz.Nurse])
	w.registerPhone(w.people[authz.ClinicalManager])
	return w
}

// registerPhone registers a device that accepts pushes.
func (s *nightShift) registerPhone(user *collections.User) {
	s.t.Helper()
	s.requestAs(user, "POST", "/notifications/tokens/register/", object{
		"token": "phone of " + user.Email(), "type": "development", "device_id": "phone", "platform": "ios", "app_version": "1",
	}).want(201)
}

// portal returns the patient's own account.
func (s *nightShift) portal() *collections.User {
	s.t.Helper()
	return vigiltest.User(s.t, s.app, authz.Patient, vigiltest.PortalOf(s.patient))
}

// minute runs the jobs of a minute.
func (s *nightShift) minute() {
	s.t.Helper()
	if _, err := s.readings.ResolveHolds(s.t.Context(), s.app, s.now); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.pipeline.AlertUncorrected(s.t.Context(), s.app, s.now); err != nil {
		s.t.Fatal(err)
	}
	if _, _, err := triage.EndDueSnoozes(s.t.Context(), s.app, s.now); err != nil {
		s.t.Fatal(err)
	}
}

// advance moves the clock, minute by minute.
func (s *nightShift) advance(d time.Duration) {
	s.t.Helper()
	for until := s.now.Add(d); s.now.Before(until); {
		s.now = s.now.Add(min(time.Minute, until.Sub(s.now)))
		s.minute()
	}
}

// pushed dispatches the due notifications and returns how many pushes of a channel a user received since the last call.
func (s *nightShift) pushed(user *collections.User, channel string) (n int) {
	s.t.Helper()
	if _, err := s.dispatcher.SendDue(s.t.Context(), s.app); err != nil {
		s.t.Fatal(err)
	}
	var all []struct {
		ID      string `db:"id"`
		Channel string `db:"channel"`
	}
	err := s.app.DB().NewQuery(`SELECT d.id, n.channel FROM push_deliveries d JOIN notifications n ON n.id = d.notification
		WHERE n.user = {:user} AND d.status = 'sent' AND d.type != 'counted'`).Bind(dbx.Params{"user": user.Id}).All(&all)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, push := range all {
		if push.Channel != channel {
			continue
		}
		n++
		if _, err := s.app.DB().Update("push_deliveries", dbx.Params{"type": "counted"}, dbx.HashExp{"id": push.ID}).Execute(); err != nil {
			s.t.Fatal(err)
		}
	}
	return n
}

// wantPushed checks how many pushes about alerts and escalations the nurse and the manager received since the last call.
func (s *nightShift) wantPushed(what string, alerted, escalated int) {
	s.t.Helper()
	if got := s.pushed(s.people[authz.Nurse], notifications.Alerts); got != alerted {
		s.t.Errorf("%s: %d pushes about alerts, want %d", what, got, alerted)
	}
	if got := s.pushed(s.people[authz.ClinicalManager], notifications.Escalations); got != escalated {
		s.t.Errorf("%s: %d pushes about escalations, want %d", what, got, escalated)
	}
}

// cuff sends a reading as the gateway does; a pulse of 0 is left out.
func (s *nightShift) cuff(systolic, diastolic, pulse int) object {
	s.t.Helper()
	return s.cuffAt(s.now, systolic, diastolic, pulse)
}

func (s *nightShift) cuffAt(at time.Time, systolic, diastolic, pulse int) object {
	s.t.Helper()
	more := ""
	if pulse > 0 {
		more = fmt.Sprintf(`,"pulse":%d`, pulse)
	}
	device := "BP-1"
	if s.now.Sub(at) > time.Hour {
		device = fmt.Sprint("BP-", at.Unix()) // one that goes back in time would be doubted
		s.worked(s.patient, device)
	}
	s.postEvent(s.t, fmt.Sprintf(`{"event_type":"measurement.created","device_id":%q,"patient_id":"GW-1","measurement_type":"bp",
		"values":{"systolic":%d,"diastolic":%d%s},"timestamp":%q}`, device, systolic, diastolic, more, at.UTC().Format(time.RFC3339Nano))).want(200)
	return s.newest()
}

// alertsOf returns the patient's alerts, newest first.
func (s *nightShift) alertsOf(pairs ...string) []object {
	s.t.Helper()
	return s.request(authz.Nurse, "GET", "/alerts/"+query(append([]string{"patient_id", s.patient, "page_size", "100"}, pairs...)...), nil).results()
}

// newest returns the patient's newest alert, or nil.
func (s *nightShift) newest() object {
	s.t.Helper()
	if list := s.alertsOf(); len(list) > 0 {
		return list[0]
	}
	return nil
}

// escalationsOf returns the patient's open escalations.
func (s *nightShift) escalationsOf() []object {
	s.t.Helper()
	list := s.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", s.patient), nil).results()
	return slices.DeleteFunc(list, func(e object) bool { return e["status"] == "resolved" || e["status"] == "cancelled" })
}

// wantStat checks how many escalations are open.
func (s *nightShift) wantStat(what string, n int) {
	s.t.Helper()
	open := s.escalationsOf()
	if len(open) != n {
		s.t.Errorf("%s: %d escalations are open, want %d: %v", what, len(open), n, open)
	}
	for _, e := range open {
		if e["priority"] != "stat" || e["created_by"] != "system" {
			s.t.Errorf("%s: an escalation is %v by %v", what, e["priority"], e["created_by"])
		}
	}
}

// closeEscalations resolves the open escalations.
func (s *nightShift) closeEscalations() {
	s.t.Helper()
	for _, e := range s.escalationsOf() {
		s.request(authz.Nurse, "PATCH", fmt.Sprintf("/escalations/%v/", e["id"]), object{"status": "resolved"}).want(200)
	}
}

// snooze suppresses blood pressure alerts and, if critical is set, critical ones.
func (s *nightShift) snooze(length time.Duration, critical bool) reply {
	s.t.Helper()
	return s.request(authz.Nurse, "POST", "/patients/"+s.patient+"/snoozes/", object{
		"type": "blood_pressure", "reason": "Known.", "include_critical": critical, "ends_at": s.now.Add(length).UTC().Format(time.RFC3339Nano),
	})
}

func (s *nightShift) acknowledge(alert object) {
	s.t.Helper()
	s.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%v/acknowledge/", alert["id"]), object{}).want(200)
}

// want checks values of an alert.
func (s *nightShift) want(what string, alert, values object) {
	s.t.Helper()
	for name, want := range values {
		if got := alert[name]; got != want {
			s.t.Errorf("%s: %s is %v, want %v", what, name, got, want)
		}
	}
}

// typed stores a reading that the user types.
func (s *nightShift) typed(by *collections.User, systolic int) {
	s.t.Helper()
	s.requestAs(by, "POST", "/ingestion/blood-pressure/", object{
		"patient_id": s.patient, "systolic": systolic, "diastolic": 80, "measured_at": s.now.Format(time.RFC3339),
	}).want(201)
}
