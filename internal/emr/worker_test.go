package emr_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestSendDueSucceeds(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	id, observation := queueDelivery(t, app, patient, now.Add(-time.Minute))
	var finished []emr.Result
	w := newWorker(f, clock, func(o *emr.WorkerOptions) {
		o.Finished = func(s emr.Result) { finished = append(finished, s) }
	})
	round := sendDue(t, w, app, 0)
	if round.Succeeded != 1 || len(round.Failures) != 0 || f.sends[observation] != 1 || f.searches[observation] != 0 {
		t.Errorf("%+v, sent %d times, looked %d times", round, f.sends[observation], f.searches[observation])
	}
	check(t, app, collections.Transmissions, id, map[string]any{"status": "transmitted", "emr_resource_id": f.stored[observation], "error_code": ""})
	check(t, app, collections.Observations, observation, map[string]any{"fhir_status": "transmitted", "emr_resource_id": f.stored[observation]})
	if diff := cmp.Diff([]emr.Result{
		{TransmissionID: id, ObservationID: observation, EMRID: f.stored[observation], StoredAt: now.Add(-time.Minute)},
	}, finished); diff != "" {
		t.Error(diff)
	}
	if !bytes.Contains(f.body, []byte(`"Patient/erx-1"`)) || bytes.Contains(f.body, []byte(patient)) {
		t.Errorf("delivered: %s", f.body)
	}
	ledger := attempts(t, app, id)
	if len(ledger) != 1 || ledger[0].GetInt("status_code") != 201 || ledger[0].GetInt("duration_ms") != 50 || ledger[0].GetString("error_code") != "" ||
		ledger[0].GetString("started_at") != collections.FormatInstant(now) || ledger[0].GetString("request_id") == "" {
		t.Errorf("ledger: %v", ledger)
	}
	if diff := cmp.Diff([]string{"emr.transmit 0 " + id + " " + patient}, trail(t, app)); diff != "" {
		t.Error(diff)
	}
	if round := sendDue(t, w, app, 0); round.Succeeded != 0 {
		t.Error("sent again")
	}
}

func attempts(t *testing.T, app core.App, id string) (ledger []*core.Record) {
	t.Helper()
	if err := app.RecordQuery(collections.TransmissionAttempts).AndWhere(dbx.HashExp{"transmission": id}).OrderBy("rowid").All(&ledger); err != nil {
		t.Fatal(err)
	}
	return ledger
}

func trail(t *testing.T, app core.App) (events []string) {
	t.Helper()
	err := app.DB().NewQuery("SELECT event || ' ' || outcome || ' ' || resource_id || ' ' || patient FROM audit_log ORDER BY id").Column(&events)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestSendDueFails(t *testing.T) {
	for _, test := range []struct {
		spread float64
		retry  time.Duration
	}{{0, 5 * time.Minute}, {1, 5*time.Minute + 30*time.Second}, {-1, 4*time.Minute + 30*time.Second}} {
		app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
		id, observation := queueDelivery(t, app, patient, now)
		f.refuse = func(string, int) *emr.Error { return invalid() }
		w := newWorker(f, clock, func(o *emr.WorkerOptions) { o.Jitter = func() float64 { return test.spread } })
		round := sendDue(t, w, app, 0)
		want := []emr.Result{{
			TransmissionID: id, ObservationID: observation, ErrorCode: "invalid_resource",
			ErrorMessage: "Invalid FHIR resource: required", RetryAt: now.Add(test.retry), StoredAt: now,
		}}
		if diff := cmp.Diff(want, round.Failures); diff != "" || round.Succeeded != 0 {
			t.Error(diff)
		}
		check(t, app, collections.Transmissions, id, map[string]any{
			"status": "failed", "attempt_count": 1.0, "diagnostics": "Ada is missing",
			"ambiguous": false, "next_retry_at": collections.FormatInstant(now.Add(test.retry)),
		})
		ledger := attempts(t, app, id)
		if len(ledger) != 1 || ledger[0].GetInt("status_code") != 422 || ledger[0].GetString("error_code") != "invalid_resource" ||
			ledger[0].GetString("started_at") != collections.FormatInstant(now.Add(time.Second)) {
			t.Errorf("ledger: %v", ledger)
		}
		if diff := cmp.Diff([]string{"emr.transmit 4 " + id + " " + patient}, trail(t, app)); diff != "" {
			t.Error(diff)
		}
	}
}

// Six attempts in all, by the schedule; then it is a dead letter.
func TestSendDueUntilDeadLetter(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	id, observation := queueDelivery(t, app, patient, now)
	f.refuse = func(string, int) *emr.Error { return invalid() }
	w := newWorker(f, clock, nil)
	for send := range 6 {
		sendDue(t, w, app, 0)
		if f.sends[observation] != send+1 {
			t.Fatalf("%d sends, want %d", f.sends[observation], send+1)
		}
		if send < 5 {
			clock.advance(schedule[send] - time.Microsecond)
			sendDue(t, w, app, 0)
			clock.advance(time.Microsecond)
		}
	}
	clock.advance(365 * 24 * time.Hour)
	if round := sendDue(t, w, app, 0); len(round.Failures) != 0 || f.sends[observation] != 6 {
		t.Errorf("%d sends", f.sends[observation])
	}
	check(t, app, collections.Transmissions, id, map[string]any{"status": "failed", "attempt_count": 5.0, "next_retry_at": ""})
	if len(attempts(t, app, id)) != 6 {
		t.Error("the ledger lacks attempts")
	}
}

// After an unknown outcome, the worker searches before it sends.
func TestSendDueAfterAmbiguousEnd(t *testing.T) {
	for _, test := range []struct {
		name    string
		arrived bool
		sends   int
	}{{"it had arrived", true, 1}, {"it had not", false, 2}} {
		t.Run(test.name, func(t *testing.T) {
			app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
			id, observation := queueDelivery(t, app, patient, now)
			f.refuse = func(observationID string, sends int) *emr.Error {
				if sends > 1 {
					return nil
				}
				if test.arrived {
					f.stored[observationID] = "emr-first"
				}
				return unavailable()
			}
			w := newWorker(f, clock, nil)
			if round := sendDue(t, w, app, 0); len(round.Failures) != 1 || f.searches[observation] != 0 {
				t.Fatalf("%+v", round)
			}
			check(t, app, collections.Transmissions, id, map[string]any{"ambiguous": true})
			clock.advance(schedule[0])
			if round := sendDue(t, w, app, 0); round.Succeeded != 1 || f.searches[observation] != 1 || f.sends[observation] != test.sends {
				t.Errorf("%+v, looked %d times, sent %d times", round, f.searches[observation], f.sends[observation])
			}
			check(t, app, collections.Transmissions, id, map[string]any{
				"status": "transmitted", "ambiguous": false, "attempt_count": 1.0,
				"emr_resource_id": f.stored[observation], "error_code": "", "error_message": "", "next_retry_at": "",
			})
		})
	}
}

// While the EMR cannot be searched, nothing is sent: it might be there.
func TestSendDueCannotSearch(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	id, observation := queueDelivery(t, app, patient, now)
	if _, err := app.DB().NewQuery("UPDATE transmissions SET ambiguous = TRUE").Execute(); err != nil {
		t.Fatal(err)
	}
	f.searchErr = &emr.Error{Code: emr.CodeAuth, Status: 401, Message: "EMR authorization failed (401)"}
	if round := sendDue(t, newWorker(f, clock, nil), app, 0); len(round.Failures) != 1 || f.sends[observation] != 0 {
		t.Errorf("%+v, sent %d times", round, f.sends[observation])
	}
	check(t, app, collections.Transmissions, id, map[string]any{"ambiguous": true, "error_code": "auth_error"})
}

// Without an EMR nothing is attempted and no attempt is used up.
func TestSendDueNotConfigured(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	id, _ := queueDelivery(t, app, patient, now)
	queueDelivery(t, app, patient, now)
	f.isUnconfigured = true
	before := vigiltest.RowCounts(t, app)
	round := sendDue(t, newWorker(f, clock, nil), app, 0)
	if diff := cmp.Diff(emr.SendCounts{Skipped: 2}, round); diff != "" {
		t.Error(diff)
	}
	check(t, app, collections.Transmissions, id, map[string]any{"status": "pending", "attempt_count": 0.0, "last_attempted_at": ""})
	if added := vigiltest.RowsAdded(t, app, before); len(added) != 0 || len(f.sends) != 0 {
		t.Errorf("rows %v, sends %v", added, f.sends)
	}
}

// An observation that cannot be sent as it is fails without a request; a database error is no failure of the EMR.
func TestSendDueCannotRender(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	withoutID, _ := queueDelivery(t, app, unlinkedPatient, now)
	gone, _ := queueDelivery(t, app, patient, now)
	w := newWorker(f, clock, func(o *emr.WorkerOptions) {
		o.Load = func(core.App, string) (fhir.StoredObservation, error) {
			return fhir.StoredObservation{}, fault.Missing()
		}
	})
	if round := sendDue(t, w, app, 0); len(round.Failures) != 1 || round.Skipped != 1 || len(f.sends) != 0 {
		t.Errorf("%+v", round)
	}
	check(t, app, collections.Transmissions, withoutID, map[string]any{"status": "pending", "waits_for": "link", "error_code": "", "attempt_count": 0.0})
	check(t, app, collections.Transmissions, gone, map[string]any{"error_code": "invalid_resource"})
	if len(attempts(t, app, gone)) != 0 {
		t.Error("the ledger holds a request that never left")
	}

	formless, _ := queueDelivery(t, app, patient, now)
	w = newWorker(f, clock, func(o *emr.WorkerOptions) {
		o.Load = func(core.App, string) (fhir.StoredObservation, error) { return fhir.StoredObservation{}, nil }
	})
	sendDue(t, w, app, 0)
	check(t, app, collections.Transmissions, formless, map[string]any{"error_message": "The observation has no FHIR form"})

	ours, _ := queueDelivery(t, app, patient, now)
	w = newWorker(f, clock, func(o *emr.WorkerOptions) {
		o.Load = func(core.App, string) (fhir.StoredObservation, error) {
			return fhir.StoredObservation{}, errors.New("disk")
		}
	})
	if _, err := w.SendDue(t.Context(), app, 0); err == nil || !strings.Contains(err.Error(), "disk") {
		t.Errorf("%v", err)
	}
	check(t, app, collections.Transmissions, ours, map[string]any{"status": "processing", "attempt_count": 0.0})
	clock.advance(10 * time.Minute)
	sendDue(t, newWorker(f, clock, nil), app, 0)
	check(t, app, collections.Transmissions, ours, map[string]any{
		"status": "failed", "error_code": "timeout", "attempt_count": 1.0, "ambiguous": true,
		"error_message": "Delivery was interrupted", "last_attempted_at": collections.FormatInstant(now),
	})
}

// With waits of any length, one call sends each delivery at most once.
func TestSendDueOncePerCall(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Microsecond, time.Millisecond} {
		app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
		for range 5 {
			queueDelivery(t, app, patient, now)
		}
		f.refuse = func(string, int) *emr.Error { clock.advance(time.Second); return invalid() }
		w := newWorker(f, clock, func(o *emr.WorkerOptions) { o.Schedule = emr.Schedule{wait, wait, wait, wait, wait} })
		for call := 1; call <= 6; call++ {
			if round := sendDue(t, w, app, 0); len(round.Failures) != 5 {
				t.Errorf("waiting %s, call %d: %d failures", wait, call, len(round.Failures))
			}
			clock.advance(time.Second)
		}
		for observation, sends := range f.sends {
			if sends != 6 {
				t.Errorf("waiting %s: %s was sent %d times", wait, observation, sends)
			}
		}
	}
}

func TestSendDueLimit(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	var observations []string
	for i := range 150 {
		_, observation := queueDelivery(t, app, patient, now.Add(-time.Duration(i)*time.Second))
		observations = append(observations, observation)
	}
	w := newWorker(f, clock, nil)
	if round := sendDue(t, w, app, 100); round.Succeeded != 100 {
		t.Errorf("%d sent, want 100", round.Succeeded)
	}
	if f.sends[observations[149]] != 1 || f.sends[observations[0]] != 0 {
		t.Error("not the oldest first")
	}
	if round := sendDue(t, w, app, 100); round.Succeeded != 50 {
		t.Errorf("%d sent, want the other 50", round.Succeeded)
	}
}

// With concurrent callers, each claim is sent once.
func TestSendDueConcurrently(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	const records = 120
	for range records {
		queueDelivery(t, app, patient, now)
	}
	w := newWorker(f, clock, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var workers, askers sync.WaitGroup
	workers.Go(func() { w.Run(ctx, app) })
	for range 4 {
		askers.Go(func() {
			w.Wake()
			if _, err := w.SendDue(ctx, app, 30); err != nil {
				t.Error(err)
			}
			w.Wake()
			if _, err := w.SendDue(ctx, app, 0); err != nil {
				t.Error(err)
			}
		})
	}
	askers.Wait()
	cancel()
	workers.Wait()
	if len(f.sends) != records {
		t.Errorf("%d of %d sent", len(f.sends), records)
	}
	for observation, sends := range f.sends {
		if sends != 1 {
			t.Errorf("%s was sent %d times", observation, sends)
		}
	}
}

// A slow worker counts as gone after a time. When it returns its lease has expired: its result is dropped, and the next worker searches the
// EMR first.
func TestSlowWorkerLosesLease(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	id, observation := queueDelivery(t, app, patient, now)
	other := newWorker(f, clock, nil)
	var once sync.Once
	f.onSend = func(string) {
		once.Do(func() {
			clock.advance(11 * time.Minute)
			if round := sendDue(t, other, app, 0); round.Succeeded != 0 {
				t.Errorf("claimed again at once: %+v", round)
			}
		})
	}
	if round := sendDue(t, newWorker(f, clock, nil), app, 0); round.Succeeded != 0 || len(round.Failures) != 0 {
		t.Errorf("the slow one: %+v", round)
	}
	check(t, app, collections.Transmissions, id, map[string]any{"status": "failed", "error_code": "timeout", "ambiguous": true, "attempt_count": 1.0})
	clock.advance(schedule[0])
	if round := sendDue(t, other, app, 0); round.Succeeded != 1 || f.sends[observation] != 1 {
		t.Errorf("%+v, sent %d times", round, f.sends[observation])
	}
	check(t, app, collections.Transmissions, id, map[string]any{"status": "transmitted", "emr_resource_id": f.stored[observation]})
}

// Run recovers what an earlier process left in processing: it is searched for first, and uses up no attempt.
func TestRunRecovers(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	id, observation := queueDelivery(t, app, patient, now)
	claim(t, app, 1, now)
	f.stored[observation] = "emr-before-the-crash"
	finished := make(chan emr.Result, 1)
	w := newWorker(f, clock, func(o *emr.WorkerOptions) { o.Finished = func(s emr.Result) { finished <- s } })
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx, app) })
	if s := <-finished; s.EMRID != "emr-before-the-crash" || f.sends[observation] != 0 {
		t.Errorf("%+v, sent %d times", s, f.sends[observation])
	}
	_, later := queueDelivery(t, app, patient, now)
	w.Wake()
	if s := <-finished; s.ObservationID != later {
		t.Errorf("woken: %+v", s)
	}
	cancel()
	run.Wait()
	check(t, app, collections.Transmissions, id, map[string]any{"status": "transmitted", "attempt_count": 0.0})
}

// A retry is sent when it is due, without a wake-up.
func TestRunRetries(t *testing.T) {
	app, f := newApp(t), newEMR()
	id, _ := queueDelivery(t, app, patient, time.Now().Add(-time.Minute))
	f.refuse = func(_ string, sends int) *emr.Error {
		if sends < 3 {
			return invalid()
		}
		return nil
	}
	finished := make(chan emr.Result, 3)
	w := newWorker(f, &manualClock{}, func(o *emr.WorkerOptions) {
		o.Clock, o.Schedule = time.Now, emr.Schedule{time.Millisecond, time.Millisecond}
		o.Finished = func(s emr.Result) { finished <- s }
	})
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx, app) })
	for i := range 3 {
		if s := <-finished; s.Failed() != (i < 2) {
			t.Errorf("send %d: %+v", i+1, s)
		}
	}
	cancel()
	run.Wait()
	check(t, app, collections.Transmissions, id, map[string]any{"status": "transmitted", "attempt_count": 2.0})
}

// When the service stops, deliveries under way are finished and stored; the rest stays due.
func TestSendDueStops(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	for range 200 {
		queueDelivery(t, app, patient, now)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.onSend = func(string) { cancel() }
	round, err := newWorker(f, clock, nil).SendDue(ctx, app, 0)
	if !errors.Is(err, context.Canceled) || round.Succeeded == 0 || round.Succeeded == 200 {
		t.Errorf("%d sent (%v)", round.Succeeded, err)
	}
	pending, processing, _, err := emr.Backlog(app)
	if pending != 200-round.Succeeded || processing != 0 || err != nil {
		t.Errorf("%d pending, %d in processing (%v)", pending, processing, err)
	}
	if result, err := audit.Verify(app, nil); err != nil || !result.Valid {
		t.Errorf("audit chain: %+v (%v)", result, err)
	}
}
