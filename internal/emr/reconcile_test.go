package emr_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// storeDespiteError makes the EMR store what it reports as failed.
func (e *stubEMR) storeDespiteError() {
	e.refuse = func(id string, _ int) *emr.Error {
		e.stored[id] = "emr-late"
		return unavailable()
	}
}

// deadLetter makes a dead letter by refusals, with a known outcome.
func (c *changingReading) deadLetter() {
	c.t.Helper()
	c.emr.refuse = func(string, int) *emr.Error { return invalid() }
	for range 6 {
		c.send(24 * time.Hour)
	}
	check(c.t, c.app, collections.Transmissions, c.id, map[string]any{"status": "failed", "next_retry_at": "", "ambiguous": false})
	c.emr.refuse = nil
}

// transmit sends the reading as a manual transmit, and waits for the result.
func (c *changingReading) transmit() {
	c.t.Helper()
	ended := make(chan emr.Result, 1)
	c.worker.Finished = func(r emr.Result) { ended <- r }
	ctx, cancel := context.WithCancel(c.t.Context())
	var run sync.WaitGroup
	run.Go(func() { c.worker.Run(ctx, c.app) })
	if _, err := c.worker.Transmit(c.app, c.reading, person, c.clock.now()); err != nil {
		c.t.Fatal(err)
	}
	<-ended
	cancel()
	run.Wait()
	c.worker = newWorker(c.emr, c.clock, func(o *emr.WorkerOptions) { o.Load = c.worker.Load })
}

// reconcile reconciles after some time and returns how many outcomes it resolved.
func (c *changingReading) reconcile(after time.Duration) int {
	c.t.Helper()
	c.clock.advance(after)
	resolved, err := c.worker.ReconcileUnknown(c.t.Context(), c.app)
	if err != nil {
		c.t.Fatal(err)
	}
	return resolved
}

// A manual transmit of a dead letter has an unknown outcome and no retry, but the EMR has it: reconciling finds it and sends nothing.
func TestManualTransmitWithUnknownOutcome(t *testing.T) {
	c := newChangingReading(t)
	c.deadLetter()
	c.emr.storeDespiteError()
	c.transmit()
	c.checkStatus("transmitted by hand", "failed", "emr_unavailable")
	check(t, c.app, collections.Transmissions, c.id, map[string]any{"ambiguous": true, "next_retry_at": ""})
	sent := c.emr.sends[c.reading]
	before := vigiltest.RowCounts(t, c.app)
	var finished []emr.Result
	c.worker.Finished = func(r emr.Result) { finished = append(finished, r) }
	if resolved := c.reconcile(2 * time.Minute); resolved != 1 {
		t.Errorf("%d resolved", resolved)
	}
	c.checkStatus("reconciled", "transmitted", "")
	check(t, c.app, collections.Transmissions, c.id, map[string]any{
		"ambiguous": false, "emr_resource_id": "emr-late", "error_message": "", "diagnostics": "", "next_retry_at": "",
	})
	check(t, c.app, collections.Observations, c.reading, map[string]any{"emr_resource_id": "emr-late"})
	if c.emr.sends[c.reading] != sent {
		t.Error("it was sent again")
	}
	want := []emr.Result{{TransmissionID: c.id, ObservationID: c.reading, EMRID: "emr-late", StoredAt: now}}
	if diff := cmp.Diff(want, finished); diff != "" {
		t.Error(diff)
	}
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) != 2 || added[collections.AuditLog] != 1 || added["transmission_totals"] != 1 {
		t.Errorf("rows %v", added)
	}
	if resolved := c.reconcile(time.Hour); resolved != 0 || c.emr.searches[c.reading] != 1 {
		t.Errorf("%d resolved again, searched %d times", resolved, c.emr.searches[c.reading])
	}
}

// The fifth retry has an unknown outcome.
func TestLastRetryWithUnknownOutcome(t *testing.T) {
	for name, arrived := range map[string]bool{"it had arrived": true, "it had not": false} {
		t.Run(name, func(t *testing.T) {
			c := newChangingReading(t)
			c.emr.refuse = func(id string, sends int) *emr.Error {
				if sends < 6 {
					return invalid()
				}
				if arrived {
					c.emr.stored[id] = "emr-late"
				}
				return unavailable()
			}
			for range 6 {
				c.send(24 * time.Hour)
			}
			check(t, c.app, collections.Transmissions, c.id, map[string]any{"status": "failed", "ambiguous": true, "next_retry_at": ""})
			if resolved := c.reconcile(time.Minute); (resolved == 1) != arrived {
				t.Errorf("%d resolved", resolved)
			}
			if arrived {
				c.checkStatus("found", "transmitted", "")
				return
			}
			check(t, c.app, collections.Transmissions, c.id, map[string]any{"status": "failed", "ambiguous": true}) // it may still arrive
			if resolved := c.reconcile(20 * time.Minute); resolved != 1 {
				t.Errorf("%d resolved", resolved)
			}
			check(t, c.app, collections.Transmissions, c.id, map[string]any{
				"status": "failed", "ambiguous": false, "error_code": "emr_unavailable", "next_retry_at": "", "attempt_count": 5.0,
			})
			if c.reconcile(time.Hour) != 0 || c.emr.searches[c.reading] != 2 || c.emr.sends[c.reading] != 6 {
				t.Errorf("looked %d times, sent %d", c.emr.searches[c.reading], c.emr.sends[c.reading])
			}
		})
	}
}

// While the EMR gives no answer, or one that may be cached, the outcome stays unknown. The queries become less frequent.
func TestReconcileWaitsForAnswer(t *testing.T) {
	for name, refusal := range map[string]*emr.Error{
		"unavailable": {Code: emr.CodeUnavailable, Message: "EMR unavailable (no connection)"},
		"forbidden":   {Code: emr.CodeAuth, Status: 403, Message: "forbidden"},
		"old":         {Code: emr.CodeSearchOutdated, TrustSearchAfter: time.Minute, Message: "EMR search may be out of date"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChangingReading(t)
			c.deadLetter()
			c.emr.storeDespiteError()
			c.transmit()
			c.emr.searchErr = refusal
			for range 7 * 24 * 60 {
				if c.reconcile(time.Minute) != 0 {
					t.Fatal("resolved")
				}
			}
			check(t, c.app, collections.Transmissions, c.id, map[string]any{"status": "failed", "ambiguous": true, "error_code": "emr_unavailable"})
			if searches := c.emr.searches[c.reading]; searches < 30 || searches > 80 {
				t.Errorf("searched %d times in a week", searches)
			}
			c.emr.searchErr = nil
			if c.reconcile(6*time.Hour) != 1 {
				t.Error("not resolved")
			}
			c.checkStatus("answered", "transmitted", "")
		})
	}
}

// If the EMR is down, it receives one query and not one for each delivery.
func TestReconcileStopsAtFirstOutage(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	for range 30 {
		queueDelivery(t, app, patient, now)
	}
	if _, err := app.DB().NewQuery("UPDATE transmissions SET status = 'failed', ambiguous = TRUE, error_code = 'timeout'").Execute(); err != nil {
		t.Fatal(err)
	}
	f.searchErr = &emr.Error{Code: emr.CodeTimeout, Message: "Connection timeout after 30s"}
	w := newWorker(f, clock, nil)
	for pass := range 3 {
		clock.advance(10 * time.Minute)
		if resolved, err := w.ReconcileUnknown(t.Context(), app); resolved != 0 || err != nil || len(f.searches) != pass+1 {
			t.Errorf("%d resolved, %d searched for (%v)", resolved, len(f.searches), err)
		}
	}
	f.searchErr = nil
	clock.advance(10 * time.Minute)
	if resolved, err := w.ReconcileUnknown(t.Context(), app); resolved != 30 || err != nil {
		t.Errorf("%d resolved (%v)", resolved, err)
	}
}

// After the last retry of a retraction with an unknown outcome, the copy is queried, and not sent again.
func TestLastUpdateWithUnknownOutcome(t *testing.T) {
	for name, isStored := range map[string]bool{"the EMR stored it": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			c := newChangingReading(t)
			c.send(time.Minute)
			c.retract()
			c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
			for range 8 {
				c.send(24 * time.Hour)
			}
			c.emr.hasCopy = isStored
			check(t, c.app, collections.Transmissions, c.id, map[string]any{"status": "failed", "ambiguous": true, "next_retry_at": ""})
			updates := len(c.emr.updates)
			if c.reconcile(24*time.Hour) != 1 || len(c.emr.updates) != updates {
				t.Errorf("not resolved, or put again")
			}
			if isStored {
				c.checkStatus("reconciled", "transmitted", "")
				return
			}
			c.checkStatus("reconciled", "failed", "emr_unavailable")
			check(t, c.app, collections.Transmissions, c.id, map[string]any{"ambiguous": false})
		})
	}
}

// A reading retracted while its outcome was unknown, with searches forbidden until no retry was left, is corrected once it is found, and is
// not a failure once it is known not to be there.
func TestReconcileRetracted(t *testing.T) {
	for name, arrived := range map[string]bool{"it is there": true, "it is not": false} {
		t.Run(name, func(t *testing.T) {
			c := newChangingReading(t)
			c.emr.refuse = func(id string, _ int) *emr.Error {
				if arrived {
					c.emr.stored[id] = "emr-late"
				}
				return unavailable()
			}
			c.send(time.Minute)
			c.emr.refuse = nil
			c.retract()
			c.emr.searchErr = unavailable()
			for range 8 {
				c.send(24 * time.Hour)
			}
			check(t, c.app, collections.Transmissions, c.id, map[string]any{"status": "failed", "ambiguous": true, "next_retry_at": ""})
			c.emr.searchErr = nil
			if c.reconcile(24*time.Hour) != 1 {
				t.Error("not resolved")
			}
			if !arrived {
				c.checkStatus("not there", "failed", "entered_in_error")
				c.checkSent("not there", 1)
				return
			}
			c.send(time.Minute)
			c.checkStatus("corrected", "transmitted", "")
			c.checkSent("corrected", 1, "entered-in-error")
		})
	}
}

// A delivery that was claimed in the meantime is left to its worker.
func TestReconcileSkipsClaimed(t *testing.T) {
	for _, status := range []string{"pending", "processing", "transmitted"} {
		c := newChangingReading(t)
		c.deadLetter()
		c.emr.storeDespiteError()
		c.transmit()
		c.emr.onSearch = func() {
			if _, err := c.app.DB().Update(collections.Transmissions, dbx.Params{"status": status, "updated_at": "x"}, dbx.HashExp{"id": c.id}).Execute(); err != nil {
				t.Error(err)
			}
		}
		if c.reconcile(10*time.Minute) != 0 {
			t.Errorf("%s: resolved", status)
		}
		check(t, c.app, collections.Transmissions, c.id, map[string]any{"status": status, "emr_resource_id": "", "ambiguous": true})
	}
}

// The running worker reconciles without a request.
func TestRunReconciles(t *testing.T) {
	app, f := newApp(t), newEMR()
	id, observation := queueDelivery(t, app, patient, wallClock().Add(-time.Hour))
	_, err := app.DB().NewQuery("UPDATE transmissions SET status = 'failed', ambiguous = TRUE, error_code = 'timeout'").Execute()
	if err != nil {
		t.Fatal(err)
	}
	f.stored[observation] = "emr-late"
	ended := make(chan emr.Result, 1)
	w := newWorker(f, &manualClock{}, func(o *emr.WorkerOptions) {
		o.Clock, o.Finished = wallClock, func(r emr.Result) { ended <- r }
	})
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx, app) })
	if r := <-ended; r.TransmissionID != id || r.EMRID != "emr-late" {
		t.Errorf("%+v", r)
	}
	cancel()
	run.Wait()
	if f.sends[observation] != 0 {
		t.Error("it was sent")
	}
}

// While the EMR may answer from its cache, a delivery with an unknown outcome is not sent: it waits and uses up no attempt.
func TestWaitForSearchCache(t *testing.T) {
	outdated := func() *emr.Error {
		return &emr.Error{Code: emr.CodeSearchOutdated, Message: "EMR search may be out of date", Ambiguous: true, TrustSearchAfter: time.Minute}
	}
	unsure := func() *emr.Error {
		e := unavailable()
		e.TrustSearchAfter = time.Minute
		return e
	}
	c := newChangingReading(t)
	wait := func(what string, attempts float64, after time.Duration, code string) {
		t.Helper()
		at := c.clock.now()
		c.send(0)
		check(t, c.app, collections.Transmissions, c.id, map[string]any{
			"status": "failed", "attempt_count": attempts, "ambiguous": true, "error_code": code, "next_retry_at": collections.FormatInstant(at.Add(after)),
		})
		if t.Failed() {
			t.Fatalf("after: %s", what)
		}
		c.clock.advance(after)
	}
	c.emr.refuse = func(string, int) *emr.Error { return unsure() }
	wait("the first send", 1, time.Minute, "emr_unavailable")
	c.emr.searchErr = outdated()
	wait("a search", 1, time.Minute, "search_outdated")
	wait("another search", 1, time.Minute, "search_outdated")
	c.emr.searchErr = nil
	wait("a send after that", 2, schedule[1], "emr_unavailable")
	c.emr.searchErr = outdated()
	wait("a search again", 2, time.Minute, "search_outdated")
	if n := c.emr.sends[c.reading]; n != 2 {
		t.Errorf("sent %d times", n)
	}
	c.emr.searchErr, c.emr.refuse = nil, nil
	c.send(0)
	c.checkStatus("in the end", "transmitted", "")
}

// A search in between does not hide that the EMR refused, and why.
func TestWaitForSearchCacheKeepsRefusal(t *testing.T) {
	for code, kept := range map[string]bool{
		emr.CodePatientNotFound: true, emr.CodeInvalidResource: true, emr.CodeAuth: true, emr.CodePatientMerged: true, emr.CodeTimeout: false,
	} {
		c := newChangingReading(t)
		c.emr.refuse = func(string, int) *emr.Error {
			return &emr.Error{Code: code, Status: 400, Message: "why", Diagnostics: "in its own words", Ambiguous: true}
		}
		c.send(0)
		c.emr.searchErr = &emr.Error{Code: emr.CodeSearchOutdated, Message: "EMR search may be out of date", Ambiguous: true, TrustSearchAfter: time.Minute}
		c.send(time.Hour)
		want := map[string]any{"status": "failed", "error_code": code, "error_message": "why", "next_retry_at": collections.FormatInstant(c.clock.now().Add(time.Minute))}
		if !kept {
			want["error_code"], want["error_message"] = "search_outdated", "EMR search may be out of date"
		}
		check(t, c.app, collections.Transmissions, c.id, want)
	}
}

// If the EMR's cache lives longer than the schedule's waits, the cache decides.
func TestSearchCacheOutlastsSchedule(t *testing.T) {
	c := newChangingReading(t)
	c.worker.Schedule = emr.Schedule{1e9, 1e9, 1e9, 1e9, 1e9}
	c.emr.refuse = func(string, int) *emr.Error { e := unavailable(); e.TrustSearchAfter = time.Minute; return e }
	for n := range 5 {
		at := c.clock.now()
		c.send(0)
		check(t, c.app, collections.Transmissions, c.id, map[string]any{
			"attempt_count": float64(n + 1), "next_retry_at": collections.FormatInstant(at.Add(time.Minute)),
		})
		c.clock.advance(time.Minute)
	}
}
