package jobs

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/jobs/schedule"
)

// bench is a running schedule with a fake clock.
type bench struct {
	t     *testing.T
	app   core.App
	clock *clockwork.FakeClock
	log   *lockedBuffer
	held  held
}

// held counts the ticks that the scheduler skipped because the previous run had not ended.
type held struct{ atomic.Int64 }

func (h *held) IncrementJob(_ uuid.UUID, _ string, _ []string, status gocron.JobStatus) {
	if status == gocron.SingletonRescheduled {
		h.Add(1)
	}
}

func (h *held) RecordJobTiming(time.Time, time.Time, uuid.UUID, string, []string) {}

type lockedBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string { b.Lock(); defer b.Unlock(); return b.Buffer.String() }

// start runs the given rows instead of the table.
func start(t *testing.T, zone *time.Location, rows ...job) *bench {
	t.Helper()
	usual := table
	t.Cleanup(func() { table = usual })
	table = rows
	b := &bench{t: t, app: vigiltest.NewApp(t), clock: clockwork.NewFakeClockAt(vigiltest.Clock), log: &lockedBuffer{}}
	b.schedule(zone)
	return b
}

func (b *bench) schedule(zone *time.Location) {
	scheduler, err := Start(b.app, Engines{Zone: zone, Log: slog.New(slog.NewTextHandler(b.log, nil)), Clock: b.clock}, gocron.WithMonitor(&b.held))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = scheduler.Shutdown() })
}

// advance moves the clock after every job waits for its next time.
func (b *bench) advance(d time.Duration) {
	b.t.Helper()
	b.awaitTimers()
	b.clock.Advance(d)
}

// again moves the clock until the row has run once more. The scheduler releases a run a moment after it is recorded as ended; it skips a tick in
// that moment, and again tries the next one; a run may therefore end after the clock has moved past its start.
func (b *bench) again(interval time.Duration) {
	b.t.Helper()
	for {
		noted, held := len(b.runs()), b.held.Load()
		b.advance(interval)
		for b.held.Load() == held {
			if len(b.runs()) > noted {
				return
			}
		}
	}
}

// awaitTimers waits until the scheduler has handled the last tick and every row waits for its next time.
func (b *bench) awaitTimers() {
	b.t.Helper()
	if err := b.clock.BlockUntilContext(b.t.Context(), len(table)); err != nil {
		b.t.Fatal(err)
	}
}

type noted struct {
	Job, Status, Started, Finished, Counts, Error string
}

func (b *bench) runs() (runs []noted) {
	b.t.Helper()
	var records []*core.Record
	if err := b.app.RecordQuery(collections.JobRuns).OrderBy("rowid").All(&records); err != nil {
		b.t.Fatal(err)
	}
	for _, r := range records {
		runs = append(runs, noted{
			r.GetString("job"), r.GetString("status"), r.GetString("started_at"), r.GetString("finished_at"),
			r.GetString("counts"), r.GetString("error"),
		})
	}
	return runs
}

// finished waits until n runs have ended.
func (b *bench) finished(n int) []noted {
	b.t.Helper()
	for {
		runs, ended := b.runs(), 0
		for _, r := range runs {
			if r.Status != "running" {
				ended++
			}
		}
		if ended >= n {
			return runs
		}
		if err := b.t.Context().Err(); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) at(d time.Duration) string { return collections.FormatInstant(vigiltest.Clock.Add(d)) }

func every5Minutes(run func(Engines, context.Context, core.App) (counts, error)) job {
	return job{"test", schedule.Cron("*/5 * * * *"), run}
}

func TestJobRunsOnTime(t *testing.T) {
	b := start(t, time.UTC, every5Minutes(func(Engines, context.Context, core.App) (counts, error) { return counts{"seen": 3}, nil }))
	b.advance(5*time.Minute - time.Second)
	if runs := b.runs(); len(runs) != 0 {
		t.Errorf("too early: %v", runs)
	}
	b.advance(time.Second)
	b.finished(1)
	b.again(5 * time.Minute)
	runs := b.finished(2)
	second := runs[1]
	want := []noted{
		{"test", "succeeded", b.at(5 * time.Minute), b.at(5 * time.Minute), `{"seen":3}`, ""},
		{"test", "succeeded", second.Started, second.Finished, `{"seen":3}`, ""},
	}
	if diff := cmp.Diff(want, runs); diff != "" || second.Started <= want[0].Started || second.Finished < second.Started {
		t.Error(second, diff)
	}
	if log := b.log.String(); strings.Count(log, `msg="job done"`) != 2 || !strings.Contains(log, "counts=map[seen:3]") {
		t.Error(log)
	}
}

// Daily times are in the practice's time zone.
func TestJobRunsInPracticeZone(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York") // 08:45 there
	if err != nil {
		t.Fatal(err)
	}
	daily := schedule.Daily(9, 0)
	b := start(t, newYork, job{"test", daily, func(Engines, context.Context, core.App) (counts, error) { return nil, nil }})
	b.advance(15 * time.Minute)
	if runs := b.finished(1); len(runs) != 1 || runs[0].Started != b.at(15*time.Minute) {
		t.Errorf("%v", runs)
	}
}

// A run that exceeds its interval does not overlap the next one, in this process or another.
func TestJobNeverRunsTwiceAtOnce(t *testing.T) {
	var lock sync.Mutex
	under, most := 0, 0
	began, finish := make(chan struct{}, 10), make(chan struct{})
	b := start(t, time.UTC, every5Minutes(func(Engines, context.Context, core.App) (counts, error) {
		lock.Lock()
		under++
		most = max(most, under)
		lock.Unlock()
		began <- struct{}{}
		<-finish
		lock.Lock()
		under--
		lock.Unlock()
		return nil, nil
	}))
	b.advance(5 * time.Minute)
	<-began
	b.advance(5 * time.Minute)
	b.advance(5 * time.Minute)
	b.awaitTimers() // a tick handled after the end of the run would start another
	if _, ok, err := collections.StartJob(b.app, "test", b.clock.Now()); ok || err != nil {
		t.Errorf("another process started it too (%v)", err)
	}
	close(finish)
	b.finished(1)
	b.again(5 * time.Minute)
	<-began
	runs := b.finished(2)
	lock.Lock()
	defer lock.Unlock()
	if len(runs) != 2 || most != 1 {
		t.Errorf("%d at once, runs %v", most, runs)
	}
}

func TestJobOfAnotherProcess(t *testing.T) {
	ran := false
	b := start(t, time.UTC, every5Minutes(func(Engines, context.Context, core.App) (counts, error) { ran = true; return nil, nil }))
	id, ok, err := collections.StartJob(b.app, "test", b.clock.Now())
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	run(context.Background(), b.app, Engines{Log: slog.New(slog.NewTextHandler(b.log, nil)), Clock: b.clock}, table[0])
	if ran || len(b.runs()) != 1 || !strings.Contains(b.log.String(), "its last run is still running") {
		t.Errorf("ran %t; %s", ran, b.log)
	}
	if err := collections.FinishJob(b.app, id, nil, "", b.clock.Now()); err != nil {
		t.Fatal(err)
	}
}

// A failure is recorded without its text, which is in the log; a panic ends only its run.
func TestJobFailure(t *testing.T) {
	tests := []struct {
		name string
		run  func(Engines, context.Context, core.App) (counts, error)
		want noted
		log  string
	}{
		{
			"an error", func(Engines, context.Context, core.App) (counts, error) {
				return counts{"done": 1}, errors.New("no disk")
			},
			noted{Status: "failed", Counts: `{"done":1}`, Error: "failed: see the log"},
			"no disk",
		},
		{
			"a panic", func(Engines, context.Context, core.App) (counts, error) { panic("Ada Lovelace") },
			noted{Status: "failed", Counts: "null", Error: "panicked"},
			"job panicked",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := start(t, time.UTC, every5Minutes(test.run))
			for n := 1; n <= 2; n++ {
				b.again(5 * time.Minute)
				got := b.finished(n)[n-1]
				test.want.Job, test.want.Started, test.want.Finished = "test", got.Started, got.Finished
				if diff := cmp.Diff(test.want, got); diff != "" || got.Finished < got.Started {
					t.Error(got, diff)
				}
			}
			if err := b.clock.BlockUntilContext(t.Context(), 1); err != nil { // the scheduler has logged and continues
				t.Fatal(err)
			}
			if log := b.log.String(); !strings.Contains(log, test.log) || strings.Contains(log, "Ada") {
				t.Error(log)
			}
		})
	}
}

// The start closes runs of an earlier process, and the job runs again.
func TestStartClosesAbandonedRuns(t *testing.T) {
	usual := table
	t.Cleanup(func() { table = usual })
	table = []job{every5Minutes(func(Engines, context.Context, core.App) (counts, error) { return nil, nil })}
	b := &bench{t: t, app: vigiltest.NewApp(t), clock: clockwork.NewFakeClockAt(vigiltest.Clock), log: &lockedBuffer{}}
	if _, ok, err := collections.StartJob(b.app, "test", vigiltest.Clock.Add(-time.Hour)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	b.schedule(time.UTC)
	if diff := cmp.Diff([]noted{{"test", "failed", b.at(-time.Hour), b.at(0), "null", "the process ended"}}, b.runs()); diff != "" {
		t.Error(diff)
	}
	b.advance(5 * time.Minute)
	if runs := b.finished(2); runs[1].Status != "succeeded" {
		t.Errorf("%v", runs)
	}
}

// unconfigured is an EMR client without configuration.
type unconfigured struct{ emr.EMR }

func (unconfigured) Configured() bool { return false }

var _ emr.EMR = (*emr.Client)(nil)

func TestTable(t *testing.T) {
	app := vigiltest.NewApp(t)
	if _, err := app.DB().Insert(collections.Transmissions, dbx.Params{"id": "t1", "observation": "o1", "status": "pending"}).Execute(); err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return vigiltest.Clock }
	e := Engines{
		Transmissions: emr.NewWorker(emr.WorkerOptions{EMR: unconfigured{}, Clock: clock}), Log: slog.New(slog.DiscardHandler),
		Clock: clockwork.NewFakeClockAt(vigiltest.Clock),
	}
	names := map[string]bool{}
	for _, row := range table {
		if names[row.name] {
			t.Errorf("two jobs are called %q", row.name)
		}
		names[row.name] = true
	}
	if done, err := sendDue(e, t.Context(), app); err != nil || done["skipped"] != 1 {
		t.Errorf("%v (%v)", done, err)
	}
	if done, err := rescore(e, t.Context(), app); err != nil || done["seen"] != 0 {
		t.Errorf("%v (%v)", done, err)
	}
	if _, err := maintainDatabase(e, t.Context(), app); err != nil {
		t.Error(err)
	}
}

func TestDisabledJobs(t *testing.T) {
	app := vigiltest.NewApp(t)
	e := Engines{Transmissions: emr.NewWorker(emr.WorkerOptions{EMR: unconfigured{}}), SendMeans: true, Clock: clockwork.NewFakeClockAt(vigiltest.Clock)}
	found := 0
	for _, row := range table {
		switch row.name {
		case "backup", "backup verification", "mean blood pressures", WarehouseExport:
			if done, err := row.run(e, t.Context(), app); err != nil || !maps.Equal(done, counts{"off": 1}) {
				t.Errorf("%s: %v (%v)", row.name, done, err)
			}
			found++
		}
	}
	if found != 4 {
		t.Errorf("%d of them are in the table", found)
	}
}
