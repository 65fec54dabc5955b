package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// JobRun is one recorded run of a job.
type JobRun struct {
	StartedAt, FinishedAt time.Time // FinishedAt is zero while it runs
	Status                string
	Counts                map[string]int // nil while it runs
	abandoned             bool
}

// Abandoned reports whether the process ended before the run did.
func (r JobRun) Abandoned() bool { return r.abandoned }

// AbandonedRun is the error recorded for a run that its process did not finish.
const AbandonedRun = "the process ended"

// LatestJobRun returns the latest run of a job, or nil.
func LatestJobRun(app core.App, job string) (*JobRun, error) {
	runs, err := jobRuns(app, job, time.Time{}, 1)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return &runs[0], nil
}

// JobRunsSince returns up to 10 runs of a job that started at or after a time, newest first.
func JobRunsSince(app core.App, job string, since time.Time) ([]JobRun, error) {
	return jobRuns(app, job, since, 10)
}

func jobRuns(app core.App, job string, since time.Time, most int) ([]JobRun, error) {
	var rows []struct {
		Started  string `db:"started_at"`
		Finished string `db:"finished_at"`
		Status   string `db:"status"`
		Counts   string `db:"counts"`
		Error    string `db:"error"`
	}
	err := app.ConcurrentDB().NewQuery(`SELECT started_at, finished_at, status, COALESCE(counts, '') AS counts, error FROM job_runs
		WHERE job = {:job} AND started_at >= {:since} ORDER BY started_at DESC LIMIT +{:most}`).
		Bind(dbx.Params{"job": job, "since": FormatInstant(since), "most": most}).All(&rows)
	if err != nil {
		return nil, wrap(err, "read the runs of %s", job)
	}
	runs := make([]JobRun, len(rows))
	for i, row := range rows {
		runs[i] = JobRun{StartedAt: ParseInstant(row.Started), FinishedAt: ParseInstant(row.Finished), Status: row.Status, abandoned: row.Error == AbandonedRun}
		_ = json.Unmarshal([]byte(row.Counts), &runs[i].Counts) // empty while it runs
	}
	return runs, nil
}

// LastJobStart returns when any job last started, or zero. Some jobs run every minute.
func LastJobStart(app core.App) (time.Time, error) {
	at, err := queryValue[string](app, "find the last run of any job", `SELECT COALESCE(MAX(started_at), '') FROM job_runs`, dbx.Params{})
	return ParseInstant(at), err
}

// HasJobRunBefore reports whether any job started before a time.
func HasJobRunBefore(app core.App, at time.Time) (bool, error) {
	return queryValue[bool](app, "look for earlier runs", `SELECT EXISTS (SELECT 1 FROM job_runs WHERE started_at < {:at})`, dbx.Params{"at": FormatInstant(at)})
}

// StartJob records that a job runs. ok is false if a run of the job is already recorded as running.
func StartJob(app core.App, job string, now time.Time) (runID string, ok bool, err error) {
	at := FormatInstant(now)
	err = app.NonconcurrentDB().NewQuery(`INSERT INTO job_runs (job, scheduled_at, started_at, status)
		VALUES ({:job}, {:now}, {:now}, 'running') ON CONFLICT DO NOTHING RETURNING id`).
		Bind(dbx.Params{"job": job, "now": at}).Row(&runID)
	if IsNotFound(err) {
		return "", false, nil
	}
	return runID, err == nil, wrap(err, "start job %s", job)
}

// FinishJob records the result of a run. failure is "" for success, and must contain no health information.
func FinishJob(app core.App, runID string, counts map[string]int, failure string, now time.Time) error {
	encoded, err := json.Marshal(counts)
	if err != nil {
		return fmt.Errorf("encode job counts: %w", err)
	}
	status := "succeeded"
	if failure != "" {
		status = "failed"
	}
	return update(app, "finish job", JobRuns, dbx.Params{
		"status": status, "finished_at": FormatInstant(now), "counts": string(encoded), "error": failure,
	}, dbx.HashExp{"id": runID})
}

// AbandonJobs marks runs that are still recorded as running as failed. The process calls it at startup: they belong to a process that has
// ended.
func AbandonJobs(app core.App, now time.Time) error {
	return update(app, "abandon jobs", JobRuns, dbx.Params{"status": "failed", "finished_at": FormatInstant(now), "error": AbandonedRun},
		dbx.HashExp{"status": "running"})
}

// LastSuccesses returns the start of the last successful run of each job.
func LastSuccesses(app core.App) (map[string]string, error) {
	return readMap[string]("read job runs", app.DB().NewQuery(`SELECT job, MAX(started_at) FROM job_runs WHERE status = 'succeeded' GROUP BY job`))
}

// LastSuccess returns the start of the last successful run of a job, or zero.
func LastSuccess(app core.App, job string) (time.Time, error) {
	started, err := queryValue[string](app, "find last run of "+job,
		`SELECT COALESCE(MAX(started_at), '') FROM job_runs WHERE job = {:job} AND status = 'succeeded'`, dbx.Params{"job": job})
	return ParseInstant(started), err
}
