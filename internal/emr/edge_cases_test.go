package emr_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
)

func (c *changing) task(what string, open bool) {
	c.t.Helper()
	due, err := collections.CorrectionsDue(c.app)
	if err != nil || (due == 1) != open {
		c.t.Errorf("%s: %d tasks, open is to be %t (%v)", what, due, open, err)
	}
}

// A task to correct the EMR's copy is over when a look finds that the copy says what it is to say, or that there is none.
func TestTaskEndsWithTheDoubt(t *testing.T) {
	c := newChanging(t)
	c.send(time.Minute)
	c.withdraw()
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	for range 8 {
		c.send(24 * time.Hour)
	}
	c.task("given up", true)
	c.emr.took = true
	if c.look(24*time.Hour) != 1 {
		t.Error("not cleared")
	}
	c.stands("looked at", "transmitted", "")
	c.task("the copy says so", false)

	c = newChanging(t)
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	c.send(time.Minute)
	c.emr.refuse = nil
	c.withdraw()
	c.emr.looking = unavailable()
	for range 8 {
		c.send(24 * time.Hour)
	}
	c.task("nobody knows", true)
	c.emr.looking = nil
	if c.look(24*time.Hour) != 1 {
		t.Error("not cleared")
	}
	c.stands("not there", "failed", "entered_in_error")
	c.task("there is no copy", false)
}

// So is one of a reading that is found not to be there before it is sent.
func TestTaskEndsWhereThereIsNoCopy(t *testing.T) {
	c := newChanging(t)
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	c.send(time.Minute)
	c.emr.refuse = nil
	c.withdraw()
	c.emr.looking = &emr.Error{Code: emr.CodeAuth, Status: 403, Message: "EMR authorization failed (403: insufficient scope)"}
	c.send(time.Hour)
	c.task("nobody may look", true)
	c.emr.looking = nil
	c.send(24 * time.Hour)
	c.stands("not there", "failed", "entered_in_error")
	c.task("there is no copy", false)
	figures, err := emr.ReadFigures(c.app, c.clock.now().Add(-time.Hour))
	if err != nil || figures.Failed != 0 || figures.SuccessRate() != 100 {
		t.Errorf("what is nobody's failure counts as one: %+v (%v)", figures, err)
	}
}

// The EMR's own words go with the error, whatever queues the delivery again.
func TestWordsGoWithTheError(t *testing.T) {
	refused := func(c *changing) {
		c.emr.refuse = func(string, int) *emr.Error { return invalid() }
		c.send(time.Minute)
		c.emr.refuse = nil
	}
	for name, again := range map[string]func(c *changing){
		"transformed": func(c *changing) {
			if err := c.worker.Transform(c.app, c.reading, person, c.clock.now()); err != nil {
				c.t.Fatal(err)
			}
		},
		"withdrawn": func(c *changing) { c.withdraw() },
		"linked": func(c *changing) {
			_, err := c.app.DB().Update(collections.Transmissions, dbx.Params{"error_code": emr.CodePatientMerged}, dbx.HashExp{"id": c.id}).Execute()
			if err == nil {
				err = emr.Linked(c.app, patient, c.clock.now())
			}
			if err != nil {
				c.t.Fatal(err)
			}
		},
		"corrected": func(c *changing) {
			_, err := c.app.DB().Update(collections.Transmissions, dbx.Params{"emr_resource_id": "o-1"}, dbx.HashExp{"id": c.id}).Execute()
			if err != nil {
				c.t.Fatal(err)
			}
			c.complete()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChanging(t)
			refused(c)
			found, _, err := emr.Find(c.app, c.id)
			if err != nil || found.GetString("diagnostics") == "" {
				t.Fatalf("no words: %v", err)
			}
			again(c)
			check(t, c.app, collections.Transmissions, c.id, map[string]any{"diagnostics": ""})
		})
	}
}

// What waits for the link waits for nothing else, though it changed while it was looked at and a person asked for it in vain.
func TestLinkedAfterAChangeAndAWish(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &ticking{at: now}
	id, reading := queue(t, app, stranger, now)
	_, err := app.DB().NewQuery("UPDATE transmissions SET status = 'failed', waits_for = 'link', corrections = 1, error_code = 'patient_not_found'").Execute()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.DB().Update(collections.Patients, dbx.Params{"external_id": "erx-2"}, dbx.HashExp{"id": stranger}).Execute(); err != nil {
		t.Fatal(err)
	}
	if err := emr.Linked(app, stranger, clock.now()); err != nil {
		t.Fatal(err)
	}
	sendDue(t, newWorker(f, clock, nil), app, 0)
	check(t, app, collections.Transmissions, id, map[string]any{"status": "transmitted", "waits_for": ""})
	if f.sends[reading] != 1 {
		t.Errorf("sent %d times", f.sends[reading])
	}
}

// While the line is known to be down nobody looks for what is in doubt: the EMR may have asked to be left alone.
func TestDoubtsWaitForTheLine(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &ticking{at: now}
	for range 3 {
		queue(t, app, patient, now)
	}
	if _, err := app.DB().NewQuery("UPDATE transmissions SET status = 'failed', ambiguous = TRUE, error_code = 'timeout'").Execute(); err != nil {
		t.Fatal(err)
	}
	queue(t, app, patient, now)
	f.away, f.looking = unavailable(), unavailable()
	f.refuse = func(string, int) *emr.Error { return unavailable() }
	w := newWorker(f, clock, nil)
	sendDue(t, w, app, 0)
	for range 10 {
		clock.advance(time.Minute)
		if cleared, err := w.ClearDoubts(t.Context(), app); cleared != 0 || err != nil {
			t.Fatal(cleared, err)
		}
	}
	if len(f.looks) != 0 {
		t.Errorf("%d were looked for", len(f.looks))
	}
}

// Of a patient who is linked during an outage all goes in order, with what came meanwhile.
func TestLinkedDuringAnOutage(t *testing.T) {
	inSimulatedTime(t, 2, func(w *ward) {
		unlink := func(id string) {
			if _, err := w.DB().Update(collections.Patients, dbx.Params{"external_id": id}, dbx.HashExp{"id": patientID(0)}).Execute(); err != nil {
				w.t.Fatal(err)
			}
		}
		unlink("")
		for i := range 5 {
			w.read(0, time.Duration(10-i)*time.Hour)
			time.Sleep(time.Minute)
		}
		began := time.Now()
		w.away(broken, 0, time.Hour)
		w.read(1, 0)
		time.Sleep(10 * time.Minute)
		unlink("erx-0")
		if err := emr.Linked(w, patientID(0), time.Now().UTC()); err != nil {
			w.t.Fatal(err)
		}
		w.worker.Wake()
		for range 3 {
			w.read(0, 0)
			time.Sleep(time.Minute)
		}
		time.Sleep(90 * time.Minute)
		w.once(began)
	})
}

// A patient whom the EMR no longer knows while the readings have their turns: all of them wait for the link, and are counted so.
func TestUnlinkedInTheMiddle(t *testing.T) {
	inSimulatedTime(t, 1, func(w *ward) {
		if _, err := w.DB().Update(collections.Patients, dbx.Params{"external_id": ""}, dbx.HashExp{"id": patientID(0)}).Execute(); err != nil {
			w.t.Fatal(err)
		}
		for range 5 {
			w.read(0, 0)
		}
		time.Sleep(time.Minute) // what the start of the worker put in order is done
		if _, err := w.DB().NewQuery("UPDATE transmissions SET waits_for = 'turn'").Execute(); err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(6 * time.Minute) // one sweep
		figures, err := emr.ReadFigures(w, time.Now())
		if err != nil || figures.Unlinked != 5 || figures.Pending != 0 {
			w.t.Errorf("%+v (%v)", figures, err)
		}
	})
}

// What is counted for a person to do is what that person's list shows: nothing of a deleted patient.
func TestNothingIsCountedOfDeletedPatients(t *testing.T) {
	app := newApp(t)
	queue(t, app, stranger, now)
	queue(t, app, stranger, now)
	for _, change := range []string{
		"UPDATE transmissions SET waits_for = 'link' WHERE id LIKE '%1'",
		fmt.Sprintf("UPDATE transmissions SET status = 'transmitted', correction_due_at = '%s' WHERE id LIKE '%%2'", collections.Instant(now)),
	} {
		if _, err := app.DB().NewQuery(change).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	count := func() [2]int {
		f, err := emr.ReadFigures(app, now)
		if err != nil {
			t.Fatal(err)
		}
		return [2]int{f.Unlinked, f.CorrectionsDue}
	}
	if got := count(); got != [2]int{1, 1} {
		t.Errorf("before: %v", got)
	}
	if _, err := app.DB().Update(collections.Patients, dbx.Params{"deleted_at": collections.Instant(now)}, dbx.HashExp{"id": stranger}).Execute(); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != [2]int{0, 0} {
		t.Errorf("after: %v", got)
	}
}

// What a process that is gone was sending again is due at once, and does not speak of a time that has passed.
func TestRecoveredSpeaksOfNoRetry(t *testing.T) {
	c := newChanging(t)
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	c.send(time.Minute)
	c.clock.advance(time.Hour)
	claim(t, c.app, 1, c.clock.now())
	if _, err := emr.Recover(c.app, nil, c.clock.now()); err != nil {
		t.Fatal(err)
	}
	check(t, c.app, collections.Transmissions, c.id, map[string]any{"status": "pending", "next_retry_at": "", "ambiguous": true})
}
