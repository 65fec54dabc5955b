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
	quiet := slog.New(slog.DiscardHandler)
	push := append(choice, alerts.PushEach)[0]
	w := &nightShift{readings: ingest.NewReadingStore(ingest.Rules{
		PracticeZone: newYork, AutoTransform: true, MaxFuture: 5 * time.Minute, ConfirmReadings: confirm, LateAfter: 24 * time.Hour,
		NormalReadingsNeeded: alerts.NormalReadingsRequired{Warning: 1, Critical: 2}, IrregularHeartbeats: 3,
		Suspect: vitals.Distance{Percent: 10, Amount: 10}, WarningPush: push,
	})}
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
		Push: notifications.NewPush(notifications.PushOptions{}), Zone: newYork, Clock: now, Log: quiet, NeverPushWarnings: push == alerts.PushNever,
	})
	w.patient = w.enroll(object{"gateway_patient_id": "GW-1", "phone": "555-731-9042"})
	w.request(authz.Admin, "PUT", "/patients/"+w.patient+"/care-team/", object{"members": []object{{"user_id": w.people[authz.Nurse].Number()}}}).want(200)
	w.registerPhone(w.people[authz.Nurse])
	w.registerPhone(w.people[authz.ClinicalManager])
	return w
}

// registerPhone registers a device that accepts pushes.
func (w *nightShift) registerPhone(user *collections.User) {
	w.t.Helper()
	w.requestAs(user, "POST", "/notifications/tokens/register/", object{
		"token": "phone of " + user.Email(), "type": "development", "device_id": "phone", "platform": "ios", "app_version": "1",
	}).want(201)
}

// portal returns the patient's own account.
func (w *nightShift) portal() *collections.User {
	w.t.Helper()
	return vigiltest.User(w.t, w.app, authz.Patient, vigiltest.PortalOf(w.patient))
}

// minute runs the jobs of a minute.
func (w *nightShift) minute() {
	w.t.Helper()
	if _, err := w.readings.ResolveHolds(w.t.Context(), w.app, w.now); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.pipeline.AlertUncorrected(w.t.Context(), w.app, w.now); err != nil {
		w.t.Fatal(err)
	}
	if _, _, err := triage.EndDueSnoozes(w.t.Context(), w.app, w.now); err != nil {
		w.t.Fatal(err)
	}
}

// advance moves the clock, minute by minute.
func (w *nightShift) advance(d time.Duration) {
	w.t.Helper()
	for until := w.now.Add(d); w.now.Before(until); {
		w.now = w.now.Add(min(time.Minute, until.Sub(w.now)))
		w.minute()
	}
}

// pushed dispatches the due notifications and returns how many pushes of a channel a user received since the last call.
func (w *nightShift) pushed(user *collections.User, channel string) (n int) {
	w.t.Helper()
	if _, err := w.dispatcher.SendDue(w.t.Context(), w.app); err != nil {
		w.t.Fatal(err)
	}
	var all []struct {
		ID      string `db:"id"`
		Channel string `db:"channel"`
	}
	err := w.app.DB().NewQuery(`SELECT d.id, n.channel FROM push_deliveries d JOIN notifications n ON n.id = d.notification
		WHERE n.user = {:user} AND d.status = 'sent' AND d.type != 'counted'`).Bind(dbx.Params{"user": user.Id}).All(&all)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, push := range all {
		if push.Channel != channel {
			continue
		}
		n++
		if _, err := w.app.DB().Update("push_deliveries", dbx.Params{"type": "counted"}, dbx.HashExp{"id": push.ID}).Execute(); err != nil {
			w.t.Fatal(err)
		}
	}
	return n
}

// wantPushed checks how many pushes about alerts and escalations the nurse and the manager received since the last call.
func (w *nightShift) wantPushed(what string, alerted, escalated int) {
	w.t.Helper()
	if got := w.pushed(w.people[authz.Nurse], notifications.Alerts); got != alerted {
		w.t.Errorf("%s: %d pushes about alerts, want %d", what, got, alerted)
	}
	if got := w.pushed(w.people[authz.ClinicalManager], notifications.Escalations); got != escalated {
		w.t.Errorf("%s: %d pushes about escalations, want %d", what, got, escalated)
	}
}

// cuff sends a reading as the gateway does; a pulse of 0 is left out.
func (w *nightShift) cuff(systolic, diastolic, pulse int) object {
	w.t.Helper()
	return w.cuffAt(w.now, systolic, diastolic, pulse)
}

func (w *nightShift) cuffAt(at time.Time, systolic, diastolic, pulse int) object {
	w.t.Helper()
	more := ""
	if pulse > 0 {
		more = fmt.Sprintf(`,"pulse":%d`, pulse)
	}
	device := "BP-1"
	if w.now.Sub(at) > time.Hour {
		device = fmt.Sprint("BP-", at.Unix()) // one that goes back in time would be doubted
		w.worked(w.patient, device)
	}
	w.postEvent(w.t, fmt.Sprintf(`{"event_type":"measurement.created","device_id":%q,"patient_id":"GW-1","measurement_type":"bp",
		"values":{"systolic":%d,"diastolic":%d%s},"timestamp":%q}`, device, systolic, diastolic, more, at.UTC().Format(time.RFC3339Nano))).want(200)
	return w.newest()
}

// alertsOf returns the patient's alerts, newest first.
func (w *nightShift) alertsOf(pairs ...string) []object {
	w.t.Helper()
	return w.request(authz.Nurse, "GET", "/alerts/"+query(append([]string{"patient_id", w.patient, "page_size", "100"}, pairs...)...), nil).results()
}

// newest returns the patient's newest alert, or nil.
func (w *nightShift) newest() object {
	w.t.Helper()
	if list := w.alertsOf(); len(list) > 0 {
		return list[0]
	}
	return nil
}

// escalationsOf returns the patient's open escalations.
func (w *nightShift) escalationsOf() []object {
	w.t.Helper()
	list := w.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", w.patient), nil).results()
	return slices.DeleteFunc(list, func(e object) bool { return e["status"] == "resolved" || e["status"] == "cancelled" })
}

// wantStat checks how many escalations are open.
func (w *nightShift) wantStat(what string, n int) {
	w.t.Helper()
	open := w.escalationsOf()
	if len(open) != n {
		w.t.Errorf("%s: %d escalations are open, want %d: %v", what, len(open), n, open)
	}
	for _, e := range open {
		if e["priority"] != "stat" || e["created_by"] != "system" {
			w.t.Errorf("%s: an escalation is %v by %v", what, e["priority"], e["created_by"])
		}
	}
}

// closeEscalations resolves the open escalations.
func (w *nightShift) closeEscalations() {
	w.t.Helper()
	for _, e := range w.escalationsOf() {
		w.request(authz.Nurse, "PATCH", fmt.Sprintf("/escalations/%v/", e["id"]), object{"status": "resolved"}).want(200)
	}
}

// snooze suppresses blood pressure alerts and, if critical is set, critical ones.
func (w *nightShift) snooze(length time.Duration, critical bool) reply {
	w.t.Helper()
	return w.request(authz.Nurse, "POST", "/patients/"+w.patient+"/snoozes/", object{
		"type": "blood_pressure", "reason": "Known.", "include_critical": critical, "ends_at": w.now.Add(length).UTC().Format(time.RFC3339Nano),
	})
}

func (w *nightShift) acknowledge(alert object) {
	w.t.Helper()
	w.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%v/acknowledge/", alert["id"]), object{}).want(200)
}

// want checks values of an alert.
func (w *nightShift) want(what string, alert, values object) {
	w.t.Helper()
	for name, want := range values {
		if got := alert[name]; got != want {
			w.t.Errorf("%s: %s is %v, want %v", what, name, got, want)
		}
	}
}

// typed stores a reading that the user types.
func (w *nightShift) typed(by *collections.User, systolic int) {
	w.t.Helper()
	w.requestAs(by, "POST", "/ingestion/blood-pressure/", object{
		"patient_id": w.patient, "systolic": systolic, "diastolic": 80, "measured_at": w.now.Format(time.RFC3339),
	}).want(201)
}
