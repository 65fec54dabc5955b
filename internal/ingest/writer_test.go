package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/store"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

func clock() time.Time { return now }

// startWriter starts a writer that stops with the test.
func startWriter(t testing.TB, app core.App, engine *ingest.ReadingStore) *ingest.Writer {
	t.Helper()
	w := ingest.NewWriter(engine, clock, quiet, func([]ingest.Outcome) {})
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx, app) })
	t.Cleanup(func() { cancel(); run.Wait() })
	return w
}

type answer struct {
	outcome ingest.Outcome
	err     error
}

// submitAll queues all submissions before the writer runs, so that they are one group; run starts it.
func submitAll(t *testing.T, w *ingest.Writer, submissions []ingest.Submission, run func()) []answer {
	t.Helper()
	answers := make([]answer, len(submissions))
	var senders sync.WaitGroup
	for i, s := range submissions {
		senders.Go(func() { answers[i].outcome, answers[i].err = w.Submit(t.Context(), s) })
	}
	for w.QueueDepth() < len(submissions) {
		runtime.Gosched() // wait for the senders
	}
	run()
	senders.Wait()
	return answers
}

// group stores submissions as one group and returns the callbacks of the writer.
func group(t *testing.T, app core.App, engine *ingest.ReadingStore, submissions []ingest.Submission) (answers []answer, notified [][]ingest.Outcome) {
	t.Helper()
	var lock sync.Mutex
	w := ingest.NewWriter(engine, clock, quiet, func(outcomes []ingest.Outcome) {
		lock.Lock()
		defer lock.Unlock()
		notified = append(notified, outcomes)
	})
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	answers = submitAll(t, w, submissions, func() { run.Go(func() { w.Run(ctx, app) }) })
	cancel()
	run.Wait()
	return answers, notified
}

func TestWriterManySenders(t *testing.T) {
	app, engine := newApp(t, rules)
	ids := []string{vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil)}
	w := startWriter(t, app, engine)
	const each, senders = 25, 16
	var group sync.WaitGroup
	var lock sync.Mutex
	seen := map[string]bool{}
	for sender := range senders {
		group.Go(func() {
			for i := range each {
				r := at(weight(70), now.Add(-time.Duration(sender*each+i)*time.Second))
				outcome, err := w.Submit(t.Context(), gatewaySubmission(ids[i%len(ids)], r))
				if err != nil {
					t.Error(err)
				}
				if _, err := app.FindRecordById(collections.Observations, outcome.Observation.ID); err != nil {
					t.Errorf("answered before it was stored: %v", err)
				}
				lock.Lock()
				seen[outcome.Observation.ID], seen[outcome.TransmissionID] = true, true
				lock.Unlock()
			}
		})
	}
	group.Wait()
	rows := vigiltest.RowCounts(t, app)
	if len(seen) != 2*each*senders || rows["observations"] != each*senders || rows["transmissions"] != each*senders {
		t.Errorf("%d ids, %d observations, %d transmissions", len(seen), rows["observations"], rows["transmissions"])
	}
	var days, counts int
	if err := app.DB().NewQuery("SELECT (SELECT SUM(readings) FROM reading_days), (SELECT SUM(readings) FROM daily_counts)").Row(&days, &counts); err != nil {
		t.Fatal(err)
	}
	if days != each*senders || counts != each*senders {
		t.Errorf("%d readings by day, %d by count", days, counts)
	}
	if result, err := audit.Verify(app, nil); err != nil || !result.Valid {
		t.Errorf("audit chain: %+v (%v)", result, err)
	}
}

// A rejection in a group is returned; the others are stored by the same commit.
func TestWriterRefusalInGroup(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	r := bloodPressure(120, 80)
	answers, notified := group(t, app, engine, []ingest.Submission{
		gatewaySubmission(patient, r), gatewaySubmission("0194c5a8-0000-7000-8000-00000000dead", r), gatewaySubmission(patient, at(r, now)),
	})
	var refused *fault.Error
	if answers[0].err != nil || answers[2].err != nil || !errors.As(answers[1].err, &refused) || refused.Kind != fault.NotFound {
		t.Errorf("%v", answers)
	}
	if rows := vigiltest.RowCounts(t, app)["observations"]; rows != 2 || len(notified) != 1 || len(notified[0]) != 2 {
		t.Errorf("%d observations, %d callbacks", rows, len(notified))
	}
}

// A repeat in the group of the first is a duplicate of it, although neither is committed.
func TestWriterDuplicateInGroup(t *testing.T) {
	app, engine := newApp(t, rules)
	s := gatewaySubmission(vigiltest.Patient(t, app, nil), bloodPressure(185, 80))
	s.GatewayKey = "key"
	conflicting := s
	conflicting.Reading = bloodPressure(186, 80)
	answers, notified := group(t, app, engine, []ingest.Submission{s, s, s, conflicting})
	stored, duplicates, conflicts := 0, 0, 0
	for _, a := range answers {
		switch {
		case a.err != nil:
			t.Error(a.err)
		case a.outcome.Duplicate:
			duplicates++
		case a.outcome.Conflict:
			conflicts++
		default:
			stored++
		}
		if a.outcome.Observation.ID != answers[0].outcome.Observation.ID {
			t.Error("two observations")
		}
	}
	// The scheduler decides which is first: either the three agree and the other conflicts, or the reverse.
	if stored != 1 || duplicates+conflicts != 3 || len(notified) != 1 || len(notified[0]) != 1 {
		t.Errorf("%d stored, %d duplicates, %d conflicts", stored, duplicates, conflicts)
	}
	if rows := vigiltest.RowCounts(t, app); rows["observations"] != 1 || rows["alerts"] != 1 || rows["transmissions"] != 1 {
		t.Errorf("%v", rows)
	}
}

// breakAlertsOf makes every statement that stores an alert of a patient fail, after the observation is stored.
func breakAlertsOf(t *testing.T, app core.App, patient string) {
	t.Helper()
	_, err := app.DB().NewQuery(fmt.Sprintf(`CREATE TRIGGER broken BEFORE INSERT ON alerts WHEN NEW.patient = '%s'
		BEGIN SELECT RAISE(ABORT, 'broken'); END`, patient)).Execute()
	if err != nil {
		t.Fatal(err)
	}
}

// An error in the middle of a reading rolls the group back; stored one by one, only that reading fails, without a trace.
func TestWriterReplaysOneByOne(t *testing.T) {
	app, engine := newApp(t, rules)
	well, broken := vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil)
	breakAlertsOf(t, app, broken)
	var submissions []ingest.Submission
	for i := range 9 {
		patient := well
		if i == 4 {
			patient = broken
		}
		submissions = append(submissions, gatewaySubmission(patient, at(bloodPressure(150, 80), now.Add(-time.Duration(i)*time.Minute))))
	}
	answers, notified := group(t, app, engine, submissions)
	for i, a := range answers {
		var refused *fault.Error
		if i == 4 && (!errors.As(a.err, &refused) || refused.Kind != fault.Unavailable || a.outcome.Observation.ID != "") {
			t.Errorf("the broken one: %+v", a)
		}
		if i != 4 && (a.err != nil || a.outcome.Duplicate || a.outcome.TransmissionID == "") {
			t.Errorf("%d: %+v", i, a)
		}
	}
	if len(notified) != 1 || len(notified[0]) != 8 {
		t.Errorf("notified %v", notified)
	}
	rows := vigiltest.RowCounts(t, app)
	if rows["observations"] != 8 || rows["alerts"] != 8 || rows["transmissions"] != 8 {
		t.Errorf("%v", rows)
	}
	var ofBroken int
	if err := app.DB().NewQuery("SELECT COUNT(*) FROM audit_log WHERE event = 'observation.create' AND patient = '" + broken + "'").Row(&ofBroken); err != nil || ofBroken != 0 {
		t.Errorf("%d traces (%v)", ofBroken, err)
	}
	if result, err := audit.Verify(app, nil); err != nil || !result.Valid {
		t.Errorf("audit chain: %+v (%v)", result, err)
	}
}

// A panic costs the reading that caused it, not the process or the other readings.
func TestWriterSurvivesPanic(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	impossible := vitals.Reading{MeasuredAt: now} // no checked reading lacks its kind
	answers, _ := group(t, app, engine, []ingest.Submission{
		gatewaySubmission(patient, weight(80)), gatewaySubmission(patient, impossible), gatewaySubmission(patient, bloodPressure(120, 80)),
	})
	var refused *fault.Error
	if answers[0].err != nil || answers[2].err != nil || !errors.As(answers[1].err, &refused) || refused.Kind != fault.Unavailable {
		t.Errorf("%v", answers)
	}
	if rows := vigiltest.RowCounts(t, app)["observations"]; rows != 2 {
		t.Errorf("%d observations", rows)
	}
}

// A sender with an ended context gets its answer at once; the reading may still be stored, and then only once.
func TestWriterSenderGoesAway(t *testing.T) {
	app, engine := newApp(t, rules)
	s := gatewaySubmission(vigiltest.Patient(t, app, nil), bloodPressure(120, 80))
	w := ingest.NewWriter(engine, clock, quiet, func([]ingest.Outcome) {})
	retracted, leave := context.WithCancel(t.Context())
	var sender sync.WaitGroup
	sender.Go(func() {
		if _, err := w.Submit(retracted, s); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	for w.QueueDepth() == 0 {
		runtime.Gosched() // until it is queued
	}
	leave()
	sender.Wait()

	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx, app) })
	outcome, err := w.Submit(t.Context(), s)
	if err != nil || !outcome.Duplicate {
		t.Errorf("sent again: %+v (%v)", outcome, err)
	}
	cancel()
	run.Wait()
}

// A full queue rejects at once. When the writer stops, it stores everything queued first, and no caller waits forever.
func TestWriterFullAndDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := ingest.NewReadingStore(rules)
		w := ingest.NewWriter(engine, clock, quiet, func([]ingest.Outcome) {})
		var answered sync.WaitGroup
		for range 4096 {
			answered.Go(func() { _, _ = w.Submit(t.Context(), gatewaySubmission(patientID, weight(80))) })
		}
		synctest.Wait()
		var refused *fault.Error
		if _, err := w.Submit(t.Context(), gatewaySubmission(patientID, weight(80))); !errors.As(err, &refused) || refused.Kind != fault.Unavailable ||
			refused.RetryAfter <= 0 {
			t.Errorf("%d wait, and another: %v", w.QueueDepth(), err)
		}
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		w.Run(stopped, brokenApp{})
		answered.Wait()
		if w.QueueDepth() != 0 {
			t.Errorf("%d still wait", w.QueueDepth())
		}
		if _, err := w.Submit(t.Context(), gatewaySubmission(patientID, weight(80))); !errors.As(err, &refused) || refused.Kind != fault.Unavailable {
			t.Errorf("after the end: %v", err)
		}
	})
}

// brokenApp is an app without a database.
type brokenApp struct{ core.App }

func (brokenApp) Store() *store.Store[string, any] { return store.New[string, any](nil) }

func (brokenApp) RunInTransaction(func(core.App) error) error { return errors.New("no database") }

func TestWriterDrainsBeforeItEnds(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	w := ingest.NewWriter(engine, clock, quiet, func([]ingest.Outcome) {})
	var submissions []ingest.Submission
	for i := range 300 { // more than one group
		submissions = append(submissions, gatewaySubmission(patient, at(weight(80), now.Add(-time.Duration(i)*time.Second))))
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for _, a := range submitAll(t, w, submissions, func() { w.Run(stopped, app) }) {
		if a.err != nil {
			t.Fatal(a.err)
		}
	}
	if rows := vigiltest.RowCounts(t, app)["observations"]; rows != len(submissions) {
		t.Errorf("%d observations", rows)
	}
}

// Ten thousand senders of the same reading: one row, and the same answer for each.
func TestTenThousandDuplicates(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	w := startWriter(t, app, engine)
	s := gatewaySubmission(patient, bloodPressure(150, 80))
	s.GatewayKey = "measurement.created|BP-1|now|blood_pressure"
	before := vigiltest.RowCounts(t, app)
	var lock sync.Mutex
	fresh, ids := 0, map[string]bool{}
	var senders sync.WaitGroup
	for range vigiltest.Rounds(10_000, 2000) {
		senders.Go(func() {
			outcome, err := w.Submit(t.Context(), s)
			for vigiltest.Code(err) == "service_unavailable" { // the queue is full: a gateway retries
				runtime.Gosched()
				outcome, err = w.Submit(t.Context(), s)
			}
			lock.Lock()
			defer lock.Unlock()
			if err != nil || outcome.Conflict {
				t.Errorf("conflict %t (%v)", outcome.Conflict, err)
			}
			if !outcome.Duplicate {
				fresh++
			}
			ids[outcome.Observation.ID] = true
		})
	}
	senders.Wait()
	added := vigiltest.RowsAdded(t, app, before)
	if fresh != 1 || len(ids) != 1 || added["observations"] != 1 || added["alerts"] != 1 || added["transmissions"] != 1 || added["audit_log"] != 2 {
		t.Errorf("%d stored under %d ids, rows %v", fresh, len(ids), added)
	}
	if !w.Alive(now, time.Minute) {
		t.Error("the writer is not alive")
	}
}

// A reading is stored without a statement journal, which is kept where a statement could fail half way: a failing one rolls back the group.
func TestReadingKeepsNoJournal(t *testing.T) {
	vigiltest.WantNoJournal(t, vigiltest.NewApp(t), ingest.InsertObservation)
}
