package emr_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var monitor = audit.Actor{Type: audit.ByUser, ID: "7", Email: "monitor@vigil.test"}

// makeDeadLetter queues a reading and sends it until no retry is left.
func makeDeadLetter(t testing.TB, app core.App, w *emr.Worker, clock *manualClock) (transmission, observation string) {
	t.Helper()
	transmission, observation = queueDelivery(t, app, patient, clock.now())
	for range 6 {
		sendDue(t, w, app, 0)
		clock.advance(7 * time.Hour)
	}
	check(t, app, collections.Transmissions, transmission, map[string]any{"status": "failed", "next_retry_at": "", "attempt_count": 5.0})
	return transmission, observation
}

func requeue(t testing.TB, app core.App, f emr.DeadLetterFilter, at time.Time) int {
	t.Helper()
	counted, err := emr.CountRequeueable(app, f)
	if err != nil {
		t.Fatal(err)
	}
	n, err := emr.Requeue(t.Context(), app, f, monitor, at)
	if err != nil || n != counted {
		t.Fatalf("%d queued again of %d: %v", n, counted, err)
	}
	return n
}

// A requeued dead letter has all its retries again, and keeps its attempts.
func TestRequeueRestoresRetries(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	f.refuse = func(string, int) *emr.Error { return invalid() }
	w := newWorker(f, clock, nil)
	id, observation := makeDeadLetter(t, app, w, clock)
	if n := requeue(t, app, emr.DeadLetterFilter{From: clock.now().Add(-time.Hour)}, clock.now()); n != 0 {
		t.Errorf("%d with an earlier last attempt", n)
	}
	if n := requeue(t, app, emr.DeadLetterFilter{From: now, ErrorCode: emr.CodeUnavailable}, clock.now()); n != 0 {
		t.Errorf("%d of another error", n)
	}
	if n := requeue(t, app, emr.DeadLetterFilter{From: now, ErrorCode: emr.CodeInvalidResource, PatientID: patient}, clock.now()); n != 1 {
		t.Errorf("%d queued again", n)
	}
	check(t, app, collections.Transmissions, id, map[string]any{
		"status": "pending", "attempt_count": 0.0, "error_code": "", "error_message": "", "next_retry_at": "", "diagnostics": "",
	})
	check(t, app, collections.Observations, observation, map[string]any{"fhir_status": "pending"})
	if n := requeue(t, app, emr.DeadLetterFilter{From: now}, clock.now()); n != 0 {
		t.Errorf("%d are queued twice", n)
	}
	if _, ledger, err := emr.FindDelivery(app, id); err != nil || len(ledger) != 6 {
		t.Errorf("%d attempts in the ledger, %v", len(ledger), err)
	}
	sendDue(t, w, app, 0)
	check(t, app, collections.Transmissions, id, map[string]any{
		"status": "failed", "attempt_count": 1.0, "next_retry_at": collections.FormatInstant(clock.now().Add(schedule[0])),
	})
	f.refuse = nil
	clock.advance(time.Hour)
	sendDue(t, w, app, 0)
	if f.sends[observation] != 8 {
		t.Errorf("sent %d times", f.sends[observation])
	}
	check(t, app, collections.Transmissions, id, map[string]any{"status": "transmitted", "error_code": ""})

	var rows []string
	if err := app.DB().NewQuery("SELECT actor_email FROM audit_log WHERE event = 'emr.requeue'").Column(&rows); err != nil || !slices.Equal(rows, []string{monitor.Email}) {
		t.Errorf("on record: %v, %v", rows, err)
	}
}

// Only dead letters are requeued: not deliveries that are under way, queued, transmitted, canceled, or of unknown outcome, nor those of
// deleted patients.
func TestRequeueOnlyDeadLetters(t *testing.T) {
	app := newApp(t)
	at := func(hours int) string { return collections.FormatInstant(now.Add(time.Duration(hours) * time.Hour)) }
	insert(t, app, collections.Patients, dbx.Params{"id": "gone", "mrn": "M-3", "deleted_at": at(0)})
	rows := map[string]dbx.Params{
		"given up":         {"status": "failed", "error_code": "timeout", "last_attempted_at": at(-2), "attempt_count": 5, "ambiguous": true, "corrections": 2, "emr_resource_id": "e-1"},
		"by hand":          {"status": "failed", "error_code": "not_configured", "last_attempted_at": at(-2)},
		"never attempted":  {"status": "failed", "error_code": "invalid_resource"},
		"a mean":           {"status": "failed", "error_code": "auth_error", "last_attempted_at": at(-1), "form": "mean_blood_pressure"},
		"too long ago":     {"status": "failed", "error_code": "timeout", "last_attempted_at": at(-49)},
		"to be tried":      {"status": "failed", "error_code": "timeout", "last_attempted_at": at(-2), "next_retry_at": at(1)},
		"waits":            {"status": "pending", "last_attempted_at": at(-2)},
		"under way":        {"status": "processing", "last_attempted_at": at(-2), "claimed_at": at(0)},
		"there":            {"status": "transmitted", "last_attempted_at": at(-2)},
		"entered in error": {"status": "failed", "error_code": "entered_in_error", "last_attempted_at": at(-2)},
		"doubted":          {"status": "failed", "error_code": "timeout", "last_attempted_at": at(-2)},
		"of the deleted":   {"status": "failed", "error_code": "timeout", "last_attempted_at": at(-2), "patient": "gone"},
	}
	for id, row := range rows {
		whole := dbx.Params{"id": id, "observation": "observation " + id, "patient": patient, "created_at": at(-3)}
		for column, value := range row {
			whole[column] = value
		}
		insert(t, app, collections.Transmissions, whole)
		status := map[bool]string{true: "suspect", false: "final"}[id == "doubted"]
		insert(t, app, collections.Observations, dbx.Params{"id": "observation " + id, "patient": patient, "status": status, "fhir_status": whole["status"]})
	}
	if n := requeue(t, app, emr.DeadLetterFilter{From: now.Add(-48 * time.Hour)}, now); n != 4 {
		t.Errorf("%d queued again", n)
	}
	var pending []string
	if err := app.DB().NewQuery("SELECT id FROM transmissions WHERE status = 'pending' ORDER BY id").Column(&pending); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a mean", "by hand", "given up", "never attempted", "waits"}, pending); diff != "" {
		t.Error(diff)
	}
	check(t, app, collections.Transmissions, "given up", map[string]any{"ambiguous": true, "corrections": 2.0, "emr_resource_id": "e-1", "attempt_count": 0.0})
	check(t, app, collections.Observations, "observation a mean", map[string]any{"fhir_status": "failed"}) // a mean's id is not the id of a reading
	check(t, app, collections.Observations, "observation there", map[string]any{"fhir_status": "transmitted"})
}

// Many are requeued in short transactions, and readings are stored in between. After an interruption a second call continues.
func TestRequeueOfMany(t *testing.T) {
	app := newApp(t)
	const many = 2001
	for i := range many {
		insert(t, app, collections.Transmissions, dbx.Params{
			"id": fmt.Sprintf("TXN-2026-%06d", i), "observation": fmt.Sprint("o", i), "patient": patient, "status": "failed", "error_code": "timeout",
			"last_attempted_at": collections.FormatInstant(now), "created_at": collections.FormatInstant(now.Add(time.Duration(i) * time.Second)),
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := emr.Requeue(ctx, app, emr.DeadLetterFilter{}, monitor, now); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d, %v", n, err)
	}
	if n := requeue(t, app, emr.DeadLetterFilter{}, now); n != many {
		t.Errorf("%d of %d", n, many)
	}
	if n := requeue(t, app, emr.DeadLetterFilter{}, now); n != 0 {
		t.Errorf("%d again", n)
	}
	var lines int
	if err := app.DB().NewQuery("SELECT COUNT(*) FROM audit_log WHERE event = 'emr.requeue'").Row(&lines); err != nil || lines != 11 {
		t.Errorf("%d lines in the trail, %v", lines, err)
	}
}

// While one person transmits by hand, another requeues all, and the worker runs, each is sent once.
func TestRequeueDuringTransmit(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	w := newWorker(f, clock, nil)
	const readings = 30
	var observations []string
	for range readings {
		id, observation := queueDelivery(t, app, patient, now)
		_, err := app.NonconcurrentDB().Update(collections.Transmissions, dbx.Params{
			"status": "failed", "error_code": "timeout", "attempt_count": 5, "last_attempted_at": collections.FormatInstant(now),
		}, dbx.HashExp{"id": id}).Execute()
		if err != nil {
			t.Fatal(err)
		}
		observations = append(observations, observation)
	}
	clock.advance(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	var run, people sync.WaitGroup
	run.Go(func() { w.Run(ctx, app) })
	for _, half := range [][]string{observations[:readings/2], observations[readings/2:]} {
		people.Go(func() {
			for _, observation := range half {
				if _, err := w.Transmit(app, observation, monitor, clock.now()); err != nil && vigiltest.Code(err) != "invalid_state" { // the worker was quicker
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		people.Go(func() {
			if _, err := emr.Requeue(ctx, app, emr.DeadLetterFilter{}, monitor, clock.now()); err != nil {
				t.Error(err)
			}
			w.Wake()
		})
	}
	people.Wait()
	for {
		pending, processing, awaiting, err := emr.Backlog(app)
		if err != nil {
			t.Fatal(err)
		}
		if pending+processing+awaiting == 0 {
			break
		}
		w.Wake()
	}
	cancel()
	run.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, observation := range observations {
		if f.sends[observation] != 1 {
			t.Errorf("%s was sent %d times", observation, f.sends[observation])
		}
	}
}

func TestParseSince(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]time.Time{
		"36h":                       now.Add(-36 * time.Hour),
		" 90m ":                     now.Add(-90 * time.Minute),
		"3d":                        now.Add(-72 * time.Hour),
		"1d12h":                     now.Add(-36 * time.Hour),
		"2026-01-14":                time.Date(2026, 1, 14, 5, 0, 0, 0, time.UTC),
		"2026-01-14T08:00:00Z":      time.Date(2026, 1, 14, 8, 0, 0, 0, time.UTC),
		"2026-01-14T08:00:00-05:00": time.Date(2026, 1, 14, 13, 0, 0, 0, time.UTC),
		"2026-01-14 08:00:00":       time.Date(2026, 1, 14, 8, 0, 0, 0, time.UTC),
	} {
		if got, ok := emr.ParseSince(text, zone, now); !ok || !got.Equal(want) {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "0", "0s", "0d", "-1h", "1d-12h", "-2d", "yesterday", "36", "d", "2026-02-30", "2026-13-01T00:00:00Z", "999999d", "9999999h", "1e9h", "+-1h"} {
		if got, ok := emr.ParseSince(text, zone, now); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}
