package routes

import (
	"errors"
	"net/http"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/jobs/schedule"
	"github.com/vigilhealth/vigil/routes/web"
)

// jobRows are the endpoints of the scheduled jobs for administrators.
func jobRows() []route {
	return []route{
		{http.MethodGet, "/jobs/", authz.ManageJobs, ratelimit.User, (*api).listJobs},
		{http.MethodPost, "/jobs/{name}/run/", authz.ManageJobs, ratelimit.User, (*api).runJob},
	}
}

// Jobs gives the endpoints access to the scheduler.
type Jobs struct {
	List func(app core.App, now time.Time) ([]schedule.Job, error)
	// Run starts a run, and calls begun in the transaction that records it. It fails with [schedule.ErrNoSuchJob] or
	// [schedule.ErrRunning].
	Run func(name string, begun func(tx core.App) error) (schedule.Job, error)
}

type jobRunView struct {
	StartedAt  *string        `json:"started_at"`
	FinishedAt *string        `json:"finished_at"`
	Status     string         `json:"status"`
	Counts     map[string]int `json:"counts"`
}

type jobView struct {
	Name      string      `json:"name"`
	Schedule  string      `json:"schedule"`
	LastRun   *jobRunView `json:"last_run"`
	NextRunAt *string     `json:"next_run_at"`
}

func viewJob(j schedule.Job) jobView {
	view := jobView{Name: j.Name, Schedule: j.Plan.String(), NextRunAt: instantOrNull(j.NextRunAt)}
	if r := j.LastRun; r != nil {
		view.LastRun = &jobRunView{StartedAt: instantOrNull(r.StartedAt), FinishedAt: instantOrNull(r.FinishedAt), Status: r.Status, Counts: r.Counts}
		if view.LastRun.Counts == nil {
			view.LastRun.Counts = map[string]int{}
		}
	}
	return view
}

func (a *api) listJobs(c *web.Call) error {
	jobs, err := a.Jobs.List(c.App, c.Now)
	if err != nil {
		return err
	}
	q := c.Query()
	page := q.Paging()
	if !q.Has("page_size") {
		page.Size = max(page.Size, len(jobs)) // there are few jobs, so the first page shows all of them
	}
	if err := q.Err(); err != nil {
		return err
	}
	return web.RespondPage(c, page, len(jobs), web.Map(web.Cut(page, jobs), viewJob), 0)
}

// runJob starts a run and returns before it ends. Source: docs/decisions/jobs.md, "Running a job by hand".
func (a *api) runJob(c *web.Call) error {
	if err := c.DecodeOptional(&struct{}{}); err != nil {
		return err
	}
	name := c.Request.PathValue("name")
	job, err := a.Jobs.Run(name, func(tx core.App) error {
		return audit.Append(tx, audit.Entry{Event: audit.JobRun, Actor: c.Actor(), ResourceType: audit.ResourceJob, ResourceID: name}, c.Now)
	})
	switch {
	case errors.Is(err, schedule.ErrNoSuchJob):
		return fault.Missing()
	case errors.Is(err, schedule.ErrRunning):
		return fault.New(fault.Conflict, "job_running", "The job is already running. Wait until it ends.")
	case err != nil:
		return err
	}
	return c.JSON(http.StatusAccepted, viewJob(job))
}
