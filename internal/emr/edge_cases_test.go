package emr_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
)

func (c *changingReading) checkTask(what string, open bool) {
	c.t.Helper()
	due, err := collections.CountCorrectionsDue(c.app)
	if err != nil || (due == 1) != open {
		c.t.Errorf("%s: %d tasks, open is to be %t (%v)", what, due, open, err)
	}
}

// Reconciling closes the task to correct a copy when it finds the copy correct, or none.
func TestReconcileClosesTask(t *testing.T) {
	c := newChangingReading(t)
	c.send(time.Minute)
	c.retract()
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	for range 8 {
		c.send(24 * time.Hour)
	}
	c.checkTask("dead letter", true)
	c.emr.hasCopy = true
	if c.reconcile(24*time.Hour) != 1 {
		t.Error("not cleared")
	}
	c.checkStatus("reconciled", "transmitted", "")
	c.checkTask("the copy says so", false)

	c = newChangingReading(t)
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	c.send(time.Minute)
	c.emr.refuse = nil
	c.retract()
	c.emr.searchErr = unavailable()
	for range 8 {
		c.send(24 * time.Hour)
	}
	c.checkTask("unknown outcome", true)
	c.emr.searchErr = nil
	if c.reconcile(24*time.Hour) != 1 {
		t.Error("not cleared")
	}
	c.checkStatus("not there", "failed", "entered_in_error")
	c.checkTask("there is no copy", false)
}

// A search before sending that finds no copy closes the task, too.
func TestTaskClosedWithoutCopy(t *testing.T) {
	c := newChangingReading(t)
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	c.send(time.Minute)
	c.emr.refuse = nil
	c.retract()
	c.emr.searchErr = &emr.Error{Code: emr.CodeAuth, Status: 403, Message: "EMR authorization failed (403: insufficient scope)"}
	c.send(time.Hour)
	c.checkTask("search forbidden", true)
	c.emr.searchErr = nil
	c.send(24 * time.Hour)
	c.checkStatus("not there", "failed", "entered_in_error")
	c.checkTask("there is no copy", false)
	figures, err := emr.CountDeliveries(c.app, c.clock.now().Add(-time.Hour))
	if err != nil || figures.Failed != 0 || figures.SuccessRate() != 100 {
		t.Errorf("a delivery without a copy counts as failed: %+v (%v)", figures, err)
	}
}

// Requeueing in any way clears the EMR's diagnostics with the error.
func TestDiagnosticsClearedWithError(t *testing.T) {
	refused := func(c *changingReading) {
		c.emr.refuse = func(string, int) *emr.Error { return invalid() }
		c.send(time.Minute)
		c.emr.refuse = nil
	}
	for name, again := range map[string]func(c *changingReading){
		"transformed": func(c *changingReading) {
			if err := c.worker.Transform(c.app, c.reading, person, c.clock.now()); err != nil {
				c.t.Fatal(err)
			}
		},
		"retracted": func(c *changingReading) { c.retract() },
		"linked": func(c *changingReading) {
			_, err := c.app.DB().Update(collections.Transmissions, dbx.Params{"error_code": emr.CodePatientMerged}, dbx.HashExp{"id": c.id}).Execute()
			if err == nil {
				err = emr.ReleaseLinked(c.app, patient, c.clock.now())
			}
			if err != nil {
				c.t.Fatal(err)
			}
		},
		"corrected": func(c *changingReading) {
			_, err := c.app.DB().Update(collections.Transmissions, dbx.Params{"emr_resource_id": "o-1"}, dbx.HashExp{"id": c.id}).Execute()
			if err != nil {
				c.t.Fatal(err)
			}
			c.complete()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChangingReading(t)
			refused(c)
			found, _, err := emr.FindDelivery(c.app, c.id)
			if err != nil || found.GetString("diagnostics") == "" {
				t.Fatalf("no words: %v", err)
			}
			again(c)
			check(t, c.app, collections.Transmissions, c.id, map[string]any{"diagnostics": ""})
		})
	}
}

// A delivery blocked by a missing link waits for nothing else, even after a change during its attempt and a failed manual transmit.
func TestLinkedAfterChangeAndManualTransmit(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	id, reading := queueDelivery(t, app, unlinkedPatient, now)
	_, err := app.DB().NewQuery("UPDATE transmissions SET status = 'failed', waits_for = 'link', corrections = 1, error_code = 'patient_not_found'").Execute()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.DB().Update(collections.Patients, dbx.Params{"external_id": "erx-2"}, dbx.HashExp{"id": unlinkedPatient}).Execute(); err != nil {
		t.Fatal(err)
	}
	if err := emr.ReleaseLinked(app, unlinkedPatient, clock.now()); err != nil {
		t.Fatal(err)
	}
	sendDue(t, newWorker(f, clock, nil), app, 0)
	check(t, app, collections.Transmissions, id, map[string]any{"status": "transmitted", "waits_for": ""})
	if f.sends[reading] != 1 {
		t.Errorf("sent %d times", f.sends[reading])
	}
}

// While the circuit breaker is open the worker does not reconcile: the EMR may have sent a Retry-After.
func TestReconcileWaitsForBreaker(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	for range 3 {
		queueDelivery(t, app, patient, now)
	}
	if _, err := app.DB().NewQuery("UPDATE transmissions SET status = 'failed', ambiguous = TRUE, error_code = 'timeout'").Execute(); err != nil {
		t.Fatal(err)
	}
	queueDelivery(t, app, patient, now)
	f.probeErr, f.searchErr = unavailable(), unavailable()
	f.refuse = func(string, int) *emr.Error { return unavailable() }
	w := newWorker(f, clock, nil)
	sendDue(t, w, app, 0)
	for range 10 {
		clock.advance(time.Minute)
		if cleared, err := w.ReconcileUnknown(t.Context(), app); cleared != 0 || err != nil {
			t.Fatal(cleared, err)
		}
	}
	if len(f.searches) != 0 {
		t.Errorf("%d were searched for", len(f.searches))
	}
}

// After a patient is linked during an outage, all deliveries are sent in order, with those of readings that arrived since.
func TestLinkedDuringOutage(t *testing.T) {
	inSimulatedTime(t, 2, func(w *simulation) {
		unlink := func(id string) {
			if _, err := w.DB().Update(collections.Patients, dbx.Params{"external_id": id}, dbx.HashExp{"id": patientID(0)}).Execute(); err != nil {
				w.t.Fatal(err)
			}
		}
		unlink("")
		for i := range 5 {
			w.addReading(0, time.Duration(10-i)*time.Hour)
			time.Sleep(time.Minute)
		}
		began := time.Now()
		w.failBetween(broken, 0, time.Hour)
		w.addReading(1, 0)
		time.Sleep(10 * time.Minute)
		unlink("erx-0")
		if err := emr.ReleaseLinked(w, patientID(0), time.Now().UTC()); err != nil {
			w.t.Fatal(err)
		}
		w.worker.Wake()
		for range 3 {
			w.addReading(0, 0)
			time.Sleep(time.Minute)
		}
		time.Sleep(90 * time.Minute)
		w.checkStoredOnce(began)
	})
}

// If a patient is unlinked during ordered delivery, all deliveries are blocked and counted as such.
func TestUnlinkedDuringDelivery(t *testing.T) {
	inSimulatedTime(t, 1, func(w *simulation) {
		if _, err := w.DB().Update(collections.Patients, dbx.Params{"external_id": ""}, dbx.HashExp{"id": patientID(0)}).Execute(); err != nil {
			w.t.Fatal(err)
		}
		for range 5 {
			w.addReading(0, 0)
		}
		time.Sleep(time.Minute) // the ordering at the worker's start has ended
		if _, err := w.DB().NewQuery("UPDATE transmissions SET waits_for = 'turn'").Execute(); err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(6 * time.Minute) // one sweep
		figures, err := emr.CountDeliveries(w, time.Now())
		if err != nil || figures.Unlinked != 5 || figures.Pending != 0 {
			w.t.Errorf("%+v (%v)", figures, err)
		}
	})
}

// The counts for a person match that person's list: none of a deleted patient.
func TestCountsExcludeDeletedPatients(t *testing.T) {
	app := newApp(t)
	queueDelivery(t, app, unlinkedPatient, now)
	queueDelivery(t, app, unlinkedPatient, now)
	for _, change := range []string{
		"UPDATE transmissions SET waits_for = 'link' WHERE id LIKE '%1'",
		fmt.Sprintf("UPDATE transmissions SET status = 'transmitted', correction_due_at = '%s' WHERE id LIKE '%%2'", collections.FormatInstant(now)),
	} {
		if _, err := app.DB().NewQuery(change).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	count := func() [2]int {
		f, err := emr.CountDeliveries(app, now)
		if err != nil {
			t.Fatal(err)
		}
		return [2]int{f.Unlinked, f.CorrectionsDue}
	}
	if got := count(); got != [2]int{1, 1} {
		t.Errorf("before: %v", got)
	}
	if _, err := app.DB().Update(collections.Patients, dbx.Params{"deleted_at": collections.FormatInstant(now)}, dbx.HashExp{"id": unlinkedPatient}).Execute(); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != [2]int{0, 0} {
		t.Errorf("after: %v", got)
	}
}

// A retry that an earlier process was sending is due at once, and has no outdated retry time.
func TestRecoveredHasNoRetryTime(t *testing.T) {
	c := newChangingReading(t)
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	c.send(time.Minute)
	c.clock.advance(time.Hour)
	claim(t, c.app, 1, c.clock.now())
	if _, err := emr.RequeueInterrupted(c.app, nil, c.clock.now()); err != nil {
		t.Fatal(err)
	}
	check(t, c.app, collections.Transmissions, c.id, map[string]any{"status": "pending", "next_retry_at": "", "ambiguous": true})
}
