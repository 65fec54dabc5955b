package cmd

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/jobs"
	"github.com/vigilhealth/vigil/jobs/schedule"
	"github.com/vigilhealth/vigil/routes"
)

func (p *Program) jobsCommand() *cobra.Command {
	command := &cobra.Command{Use: "jobs", Short: "Scheduled jobs", RunE: helpOnly}
	command.AddCommand(&cobra.Command{
		Use: "list", Short: "List the jobs with their schedule, last run and next run", Args: noArgs,
		Long: "Times are in the practice's time zone. The schedule has the five fields of cron. Works while the service runs.",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.withService(cmd, listJobs) },
	})
	return command
}

func listJobs(_ context.Context, cmd *cobra.Command, s *Service) error {
	zone := s.settings.PracticeLocation
	list, err := jobs.List(s.app, zone, s.now())
	if err != nil {
		return err
	}
	at := func(t time.Time) string { return t.In(zone).Format("2006-01-02 15:04 MST") }
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSCHEDULE\tLAST RUN\tSTATUS\tNEXT RUN")
	for _, job := range list {
		last, status := "never", "–"
		if job.LastRun != nil {
			last, status = at(job.LastRun.StartedAt), job.LastRun.Status
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", job.Name, job.Plan, last, status, at(job.NextRunAt))
	}
	return table.Flush()
}

// jobs returns the job list and the manual start for the routes. The scheduler starts after the routes are registered.
func (s *Service) jobs() routes.Jobs {
	return routes.Jobs{
		List: func(app core.App, now time.Time) ([]schedule.Job, error) {
			return jobs.List(app, s.settings.PracticeLocation, now)
		},
		Run: func(name string, begun func(tx core.App) error) (schedule.Job, error) {
			return s.Scheduler.Run(name, begun)
		},
	}
}
