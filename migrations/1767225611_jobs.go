package migrations

import "github.com/pocketbase/pocketbase/core"

func init() {
	step("1767225611_jobs.go", func(app core.App) error {
		return saveAll(app,
			newTable("job_runs").with(
				requiredText("job", 50, ""),
				instant("scheduled_at", ""),
				instant("started_at", ""),
				instant("finished_at", "Empty while running, or when the process died."),
				requiredChoice("status", "", "running", "succeeded", "failed"),
				structured("counts", ""),
				text("error", 300, ""),
			).
				index("job", false, "job, started_at", "").
				index("running", true, "job", "status = 'running'").
				index("started", false, "started_at", ""),
			newTable("health_samples").with(
				instant("sampled_at", ""),
				requiredChoice("status", "", "healthy", "degraded", "down"),
				structured("services", "Status and response time of each service."),
			).index("sampled", false, "sampled_at", ""),
		)
	})
}
