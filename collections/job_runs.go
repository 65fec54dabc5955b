package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// StartJob notes that a job runs. Only one run of a job can be noted as running; ok is false when there is one already.
func StartJob(app core.App, job string, now time.Time) (runID string, ok bool, err error) {
	at := Instant(now)
	err = app.NonconcurrentDB().NewQuery(`INSERT INTO job_runs (job, scheduled_at, started_at, status)
		VALUES ({:job}, {:now}, {:now}, 'running') ON CONFLICT DO NOTHING RETURNING id`).
		Bind(dbx.Params{"job": job, "now": at}).Row(&runID)
	if Missing(err) {
		return "", false, nil
	}
	return runID, err == nil, wrap(err, "start job %s", job)
}

// FinishJob notes how a run ended. failure is "" for success; it must hold no health information.
func FinishJob(app core.App, runID string, counts map[string]int, failure string, now time.Time) error {
	encoded, err := json.Marshal(counts)
	if err != nil {
		return fmt.Errorf("encode job counts: %w", err)
	}
	status := "succeeded"
	if failure != "" {
		status = "failed"
	}
	_, err = app.DB().Update(JobRuns, dbx.Params{
		"status": status, "finished_at": Instant(now), "counts": string(encoded),
		"error": failure,
	}, dbx.HashExp{"id": runID}).Execute()
	return wrap(err, "finish job")
}

// AbandonJobs is for the start of the process: a run noted as running belongs to a process that is gone.
func AbandonJobs(app core.App, now time.Time) error {
	return update(app, "abandon jobs", JobRuns, dbx.Params{"status": "failed", "finished_at": Instant(now), "error": "the process ended"},
		dbx.HashExp{"status": "running"})
}

// LastSuccesses are when the last runs that succeeded were started, by job.
func LastSuccesses(app core.App) (map[string]string, error) {
	return readMap[string]("read job runs", app.DB().NewQuery(`SELECT job, MAX(started_at) FROM job_runs WHERE status = 'succeeded' GROUP BY job`))
}

// LastSuccess is when the last run of a job that succeeded was started; zero when none is noted.
func LastSuccess(app core.App, job string) (time.Time, error) {
	var started string
	err := app.DB().NewQuery(`SELECT COALESCE(MAX(started_at), '') FROM job_runs WHERE job = {:job} AND status = 'succeeded'`).
		Bind(dbx.Params{"job": job}).Row(&started)
	return ParseInstant(started), wrap(err, "find last run of %s", job)
}
