package jobs

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jonboulle/clockwork"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/jobs/schedule"
)

// ran is an earlier run.
type ran struct {
	job    string
	at     time.Duration // from now
	status string
	failed string
}

// Which jobs a start catches up. Source: docs/decisions/jobs.md, "Missed runs".
func TestMissedRuns(t *testing.T) {
	usual := table
	t.Cleanup(func() { table = usual })
	nothing := func(Engines, context.Context, core.App) (counts, error) { return nil, nil }
	table = []job{ // it is 13:45
		{"noon", schedule.Daily(12, 0), nothing},
		{"evening", schedule.Daily(20, 0), nothing},
		{"morning", schedule.Daily(6, 0), nothing},
		{"often", schedule.Cron("*/5 * * * *"), nothing},
		{"thursdays", schedule.Weekly(time.Thursday, 13, 0), nothing},
		{"fridays", schedule.Weekly(time.Friday, 13, 0), nothing},
	}
	const gone = "the process ended"
	for _, test := range []struct {
		name string
		runs []ran
		want string
	}{
		{"a new folder", nil, ""},
		{"up a minute ago", []ran{{"often", -time.Minute, "succeeded", ""}}, ""},
		{"down since eleven", []ran{{"often", -165 * time.Minute, "succeeded", ""}}, "noon thursdays"},
		{"down since noon, which ran", []ran{{"noon", -105 * time.Minute, "succeeded", ""}}, "thursdays"},
		{"down since noon, which failed", []ran{{"noon", -105 * time.Minute, "failed", "failed: see the log"}}, "thursdays"},
		{"down since five", []ran{{"often", -525 * time.Minute, "succeeded", ""}}, "morning noon thursdays"},
		{"down for a day", []ran{{"often", -30 * time.Hour, "succeeded", ""}}, "evening morning noon thursdays"},
		{"down for eight days", []ran{{"often", -8 * 24 * time.Hour, "succeeded", ""}}, "fridays evening morning noon thursdays"},
		{"killed at noon", []ran{{"noon", -105 * time.Minute, "failed", gone}, {"often", -time.Minute, "succeeded", ""}}, "noon thursdays"},
		{"killed twice", []ran{{"noon", -105 * time.Minute, "failed", gone}, {"noon", -50 * time.Minute, "failed", gone}, {"often", -time.Minute, "succeeded", ""}}, "thursdays"},
		{"killed, then caught up", []ran{{"noon", -105 * time.Minute, "failed", gone}, {"noon", -50 * time.Minute, "succeeded", ""}, {"often", -time.Minute, "succeeded", ""}}, "thursdays"},
		{"started again before it was made up for", []ran{{"often", -165 * time.Minute, "succeeded", ""}, {"often", -time.Minute, "succeeded", ""}}, "noon thursdays"},
	} {
		t.Run(test.name, func(t *testing.T) {
			app := vigiltest.NewApp(t)
			for _, r := range test.runs {
				at := collections.FormatInstant(vigiltest.Clock.Add(r.at))
				_, err := app.DB().Insert(collections.JobRuns, dbx.Params{"job": r.job, "started_at": at, "finished_at": at, "status": r.status, "error": r.failed}).Execute()
				if err != nil {
					t.Fatal(err)
				}
			}
			s := &Schedule{app: app, engines: Engines{Zone: time.UTC, Clock: clockwork.NewFakeClockAt(vigiltest.Clock)}}
			rows, err := s.missed()
			var names []string
			for _, row := range rows {
				names = append(names, row.name)
			}
			if got := strings.Join(names, " "); got != test.want || err != nil {
				t.Errorf("%q, want %q (%v)", got, test.want, err)
			}
		})
	}
}

// A manual run is recorded like a scheduled one and never overlaps one.
func TestRunByHand(t *testing.T) {
	usual := table
	t.Cleanup(func() { table = usual })
	going, on := make(chan struct{}), make(chan struct{})
	table = []job{{"Long work", schedule.Daily(2, 0), func(Engines, context.Context, core.App) (counts, error) {
		going <- struct{}{}
		<-on
		return counts{"done": 7}, nil
	}}}
	b := &bench{t: t, app: vigiltest.NewApp(t), clock: clockwork.NewFakeClockAt(vigiltest.Clock), log: &lockedBuffer{}}
	s, err := Start(b.app, Engines{Zone: time.UTC, Log: slog.New(slog.NewTextHandler(b.log, nil)), Clock: b.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown() })
	trail := 0
	begun := func(core.App) error { trail++; return nil }
	if _, err := s.Run("Long work", begun); !errors.Is(err, schedule.ErrNoSuchJob) {
		t.Error(err)
	}
	refused := errors.New("no trail")
	if _, err := s.Run("long-work", func(core.App) error { return refused }); !errors.Is(err, refused) || len(b.runs()) != 0 {
		t.Errorf("%v, %v", err, b.runs())
	}
	job, err := s.Run("long-work", begun)
	if err != nil || job.Name != "long-work" || job.LastRun.Status != "running" {
		t.Errorf("%+v, %v", job, err)
	}
	<-going
	if _, err := s.Run("long-work", begun); !errors.Is(err, schedule.ErrRunning) {
		t.Error(err)
	}
	list, err := List(b.app, time.UTC, b.clock.Now())
	if err != nil || len(list) != 1 || list[0].LastRun.Status != "running" || !list[0].LastRun.FinishedAt.IsZero() {
		t.Errorf("%+v, %v", list, err)
	}
	close(on)
	b.finished(1)
	if list, err = List(b.app, time.UTC, b.clock.Now()); err != nil {
		t.Fatal(err)
	}
	want := collections.JobRun{StartedAt: vigiltest.Clock, FinishedAt: vigiltest.Clock, Status: "succeeded", Counts: map[string]int{"done": 7}}
	if diff := cmp.Diff(want, *list[0].LastRun, cmp.AllowUnexported(collections.JobRun{})); diff != "" || trail != 1 {
		t.Errorf("%s, %d lines", diff, trail)
	}
	if next := list[0].NextRunAt; !next.Equal(time.Date(2026, 1, 16, 2, 0, 0, 0, time.UTC)) {
		t.Error(next)
	}
}
