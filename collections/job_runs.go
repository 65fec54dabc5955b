package collections

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// JobRun is one run of a job as it is noted.
type JobRun struct {
	StartedAt, FinishedAt time.Time // FinishedAt is zero while it runs
	Status                string
	Counts                map[string]int // nil while it runs
	abandoned             bool
}

// Abandoned reports whether the process ended before the run did.
func (r JobRun) Abandoned() bool { return r.abandoned }

// AbandonedRun is what is noted of a run whose process has ended.
const AbandonedRun = "the process ended"

// LatestJobRun is the run of a job that began last; nil when none is noted.
func LatestJobRun(app core.App, job string) (*JobRun, error) {
	runs, err := jobRuns(app, job, time.Time{}, 1)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return &runs[0], nil
}

// JobRunsSince are the newest runs of a job that began at a time or later, some of them when there are many, the last one first.
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
		Bind(dbx.Params{"job": job, "since": Instant(since), "most": most}).All(&rows)
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

// LastSignOfJobs is when any job began last, which some do every minute; zero when none ever did.
func LastSignOfJobs(app core.App) (time.Time, error) {
	at, err := queryValue[string](app, "find the last run of any job", `SELECT COALESCE(MAX(started_at), '') FROM job_runs`, dbx.Params{})
	return ParseInstant(at), err
}

// JobsRanBefore reports whether any job began before a time.
func JobsRanBefore(app core.App, at time.Time) (bool, error) {
	return queryValue[bool](app, "find runs of long ago", `SELECT EXISTS (SELECT 1 FROM job_runs WHERE started_at < {:at})`, dbx.Params{"at": Instant(at)})
}
