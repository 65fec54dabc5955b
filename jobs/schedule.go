package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/jobs/schedule"
)

// missedRunDelay is how long after the start missed jobs run: requests that waited for the service go first.
const missedRunDelay = 20 * time.Second

// Names returns the names of all jobs.
func Names() []string {
	names := make([]string, len(table))
	for i, row := range table {
		names[i] = row.name
	}
	return names
}

// List returns every job with its last and next run, by name.
func List(app core.App, zone *time.Location, now time.Time) ([]schedule.Job, error) {
	list := make([]schedule.Job, len(table))
	for i, row := range table {
		last, err := collections.LatestJobRun(app, row.name)
		if err != nil {
			return nil, err
		}
		list[i] = schedule.Job{Name: schedule.PublicName(row.name), Plan: row.when, LastRun: last, NextRunAt: row.when.Next(now.In(zone))}
	}
	slices.SortFunc(list, func(a, b schedule.Job) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Run starts a job by its public name, as the schedule would, and does not wait for its end. begun is called in the transaction that records
// the run.
func (s *Schedule) Run(name string, begun func(tx core.App) error) (schedule.Job, error) {
	i := slices.IndexFunc(table, func(row job) bool { return schedule.PublicName(row.name) == name })
	if i < 0 {
		return schedule.Job{}, schedule.ErrNoSuchJob
	}
	row, started := table[i], s.engines.Clock.Now()
	var runID string
	err := s.app.RunInTransaction(func(tx core.App) (err error) {
		var ok bool
		if runID, ok, err = collections.StartJob(tx, row.name, started); err != nil {
			return err
		}
		if !ok {
			return schedule.ErrRunning
		}
		return begun(tx)
	})
	if err != nil {
		return schedule.Job{}, err
	}
	_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(func(ctx context.Context) {
		finish(ctx, s.app, s.engines, row, runID, started)
	}), gocron.WithName(row.name+", by hand"))
	if err != nil {
		failed := collections.FinishJob(s.app, runID, nil, "not started", s.engines.Clock.Now())
		return schedule.Job{}, errors.Join(fmt.Errorf("start %s: %w", row.name, err), failed)
	}
	return schedule.Job{
		Name: name, Plan: row.when, LastRun: &collections.JobRun{StartedAt: started, Status: "running"}, NextRunAt: row.when.Next(started.In(s.engines.Zone)),
	}, nil
}

// runMissed runs the missed jobs soon, one after the other, in the order in which they were due. Source: docs/decisions/jobs.md, "Missed
// runs".
func (s *Schedule) runMissed() error {
	rows, err := s.missed()
	if err != nil || len(rows) == 0 {
		return err
	}
	var names []string
	for _, row := range rows {
		names = append(names, row.name)
	}
	s.engines.Log.Info("scheduler missed jobs while the service was down; it runs them now", slog.Any("jobs", names))
	_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(s.engines.Clock.Now().Add(missedRunDelay))), gocron.NewTask(func(ctx context.Context) {
		for _, row := range rows {
			if ctx.Err() != nil {
				return
			}
			run(ctx, s.app, s.engines, row)
		}
	}), gocron.WithName("missed jobs"))
	if err != nil {
		return fmt.Errorf("schedule missed jobs: %w", err)
	}
	return nil
}

// missed returns the daily and weekly jobs that have not run since they were last due, if the service was running before that. A run that
// ended with its process is repeated once only: if the job itself crashed the process, it must not do so at every start.
func (s *Schedule) missed() ([]job, error) {
	var rows []job
	due := map[string]time.Time{}
	for _, row := range table {
		at, ok := row.when.Last(s.engines.Clock.Now().In(s.engines.Zone))
		if !ok {
			continue
		}
		runs, err := collections.JobRunsSince(s.app, row.name, at)
		if err != nil {
			return nil, err
		}
		ranBefore, err := collections.HasJobRunBefore(s.app, at)
		if err != nil {
			return nil, err
		}
		if len(runs) == 0 && ranBefore || len(runs) == 1 && runs[0].Abandoned() {
			rows, due[row.name] = append(rows, row), at
		}
	}
	slices.SortStableFunc(rows, func(a, b job) int { return due[a.name].Compare(due[b.name]) })
	return rows, nil
}
