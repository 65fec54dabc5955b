package emr_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// invalidSuccess checks for a fault with a code.
func invalidSuccess(t *testing.T, err error, code string) {
	t.Helper()
	if refusal, ok := errors.AsType[*fault.Error](err); !ok || refusal.Code != code {
		t.Errorf("%v, want %s", err, code)
	}
}

// untransformed stores an observation without a FHIR form.
func untransformed(t *testing.T, app core.App) (id string) {
	t.Helper()
	id = collections.NewUUID()
	insert(t, app, collections.Observations, dbx.Params{"id": id, "patient": patient, "observation_type": "weight"})
	return id
}

func TestTransform(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	w := newWorker(f, clock, nil)
	id := untransformed(t, app)
	_, err := w.Transmit(app, id, person, now)
	invalidSuccess(t, err, "not_transformed")
	if err := w.Transform(app, id, person, now); err != nil {
		t.Fatal(err)
	}
	check(t, app, collections.Observations, id, map[string]any{
		"fhir_status": "pending", "fhir_version": 1.0, "transformed_at": collections.FormatInstant(now), "transform_error": "",
	})
	// A dead letter: it is due again, and the version rises.
	f.refuse = func(string, int) *emr.Error { return invalid() }
	w.Schedule = nil
	sendDue(t, w, app, 0)
	check(t, app, collections.Observations, id, map[string]any{"fhir_status": "failed"})
	before := vigiltest.RowCounts(t, app)
	if err := w.Transform(app, id, person, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"audit_log": 1}, vigiltest.RowsAdded(t, app, before)); diff != "" {
		t.Error(diff)
	}
	check(t, app, collections.Observations, id, map[string]any{"fhir_status": "pending", "fhir_version": 2.0})
	f.refuse = nil
	clock.advance(2 * time.Hour)
	if round := sendDue(t, w, app, 0); round.Succeeded != 1 {
		t.Errorf("%+v", round)
	}
	invalidSuccess(t, w.Transform(app, id, person, now), "invalid_state")
	_, err = w.Transmit(app, id, person, now)
	invalidSuccess(t, err, "invalid_state")
	invalidSuccess(t, w.Transform(app, collections.NewUUID(), person, now), "not_found")
	_, err = w.Transmit(app, collections.NewUUID(), person, now)
	invalidSuccess(t, err, "not_found")

	_, under := queueDelivery(t, app, patient, now)
	claim(t, app, 1, now.Add(3*time.Hour))
	invalidSuccess(t, w.Transform(app, under, person, now), "invalid_state")
	_, err = w.Transmit(app, under, person, now)
	invalidSuccess(t, err, "invalid_state")
}

// A reading without a FHIR form keeps the reason and is retried by the periodic job.
func TestRetryTransforms(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	sound := newWorker(f, clock, nil)
	broken := newWorker(f, clock, func(o *emr.WorkerOptions) {
		o.Load = func(core.App, string) (fhir.StoredObservation, error) { return fhir.StoredObservation{}, nil }
	})
	id, never := untransformed(t, app), untransformed(t, app)
	invalidSuccess(t, broken.Transform(app, id, person, now), "not_transformed")
	check(t, app, collections.Observations, id, map[string]any{"fhir_status": "", "transform_error": "The reading has no FHIR form."})
	if n, err := broken.RetryTransforms(t.Context(), app, 10, now); err != nil || n != 0 {
		t.Errorf("%d transformed (%v)", n, err)
	}
	if n, err := sound.RetryTransforms(t.Context(), app, 10, now); err != nil || n != 1 {
		t.Errorf("%d transformed (%v)", n, err)
	}
	check(t, app, collections.Observations, id, map[string]any{"fhir_status": "pending", "transform_error": "", "fhir_version": 1.0})
	// An observation without a transform request stays without a FHIR form.
	check(t, app, collections.Observations, never, map[string]any{"fhir_status": ""})
	if n, err := sound.RetryTransforms(t.Context(), app, 10, now); err != nil || n != 0 {
		t.Errorf("%d transformed again (%v)", n, err)
	}
}

// startWorker starts the worker, and returns a channel of its results.
func startWorker(t *testing.T, app core.App, f *stubEMR, clock *manualClock) (*emr.Worker, <-chan emr.Result) {
	t.Helper()
	finished := make(chan emr.Result, 10)
	w := newWorker(f, clock, func(o *emr.WorkerOptions) { o.Finished = func(s emr.Result) { finished <- s } })
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx, app) })
	t.Cleanup(func() { cancel(); run.Wait() })
	return w, finished
}

func TestTransmit(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	id, observation := queueDelivery(t, app, patient, now)
	// A dead letter from long ago.
	_, err := app.DB().Update(collections.Transmissions, dbx.Params{"status": "failed", "attempt_count": 5}, dbx.HashExp{"id": id}).Execute()
	if err != nil {
		t.Fatal(err)
	}
	f.refuse = func(string, int) *emr.Error { return invalid() }
	w, finished := startWorker(t, app, f, clock)
	got, err := w.Transmit(app, observation, person, now)
	if err != nil || got != id {
		t.Fatalf("%s (%v)", got, err)
	}
	if s := <-finished; s.TransmissionID != id || !s.Failed() || !s.RetryAt.IsZero() {
		t.Errorf("it stays a dead letter: %+v", s)
	}
	check(t, app, collections.Transmissions, id, map[string]any{"status": "failed", "attempt_count": 5.0, "next_retry_at": ""})
	f.mu.Lock()
	f.refuse = nil
	f.mu.Unlock()
	if _, err := w.Transmit(app, observation, person, now); err != nil {
		t.Fatal(err)
	}
	if s := <-finished; s.Failed() || f.sends[observation] != 2 {
		t.Errorf("%+v", s)
	}
	check(t, app, collections.Observations, observation, map[string]any{"fhir_status": "transmitted"})
	var people int
	err = app.DB().NewQuery("SELECT COUNT(*) FROM audit_log WHERE event = 'emr.transmit' AND actor_type = 'user'").Row(&people)
	if err != nil || people != 2 {
		t.Errorf("%d requests are on record (%v)", people, err)
	}
}

// Without an EMR a manual transmit is accepted, and fails as not configured.
func TestTransmitNotConfigured(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	f.isUnconfigured = true
	f.refuse = func(string, int) *emr.Error {
		return &emr.Error{Code: emr.CodeNotConfigured, Message: "EMR is not configured"}
	}
	w, finished := startWorker(t, app, f, clock)
	for _, patientID := range []string{patient, unlinkedPatient} {
		id, observation := queueDelivery(t, app, patientID, now)
		if _, err := w.Transmit(app, observation, person, now); err != nil {
			t.Fatal(err)
		}
		<-finished
		check(t, app, collections.Transmissions, id, map[string]any{"status": "failed", "error_code": "not_configured", "error_message": "EMR is not configured"})
	}
}

// Without a running worker, manual transmits are refused when the queue is full.
func TestTransmitBounded(t *testing.T) {
	app, clock := newApp(t), &manualClock{at: now}
	w := newWorker(newEMR(), clock, nil)
	for i := range 257 {
		_, observation := queueDelivery(t, app, patient, now)
		_, err := w.Transmit(app, observation, person, now)
		if i < 256 && err != nil {
			t.Fatal(err)
		}
		if i == 256 {
			invalidSuccess(t, err, "service_unavailable")
			check(t, app, collections.Observations, observation, map[string]any{"fhir_status": "pending"})
		}
	}
}
