// Package jobs runs scheduled jobs: gocron calls one engine function for each row of the table. Each run is recorded with its result, and two
// runs of a job never overlap, in this process or another. Work missed while the service was down is caught up from the state of the database,
// by the next run or, for daily and weekly jobs, soon after the start. The rules are in docs/decisions/jobs.md.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/emrcontext"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/messaging"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/warehouse"
	"github.com/vigilhealth/vigil/jobs/retention"
	"github.com/vigilhealth/vigil/jobs/schedule"
)

// transformsPerRun bounds the FHIR conversions that one run retries.
const transformsPerRun = 500

// stopTimeout bounds the wait for running jobs when the service stops.
const stopTimeout = 20 * time.Second

// Engines is what the jobs call, built once in cmd.
type Engines struct {
	// MayRun reports whether this process may write the database; otherwise no job starts. Nil always may.
	MayRun        func() bool
	Transmissions *emr.Worker
	Mailer        *notifications.Mailer
	Dispatcher    *notifications.Dispatcher
	Devices       *devices.Engine
	Billing       *billing.Engine
	ReadingStore  *ingest.ReadingStore
	Ingestion     *ingest.Pipeline
	Exports       *fhirserver.BulkExporter
	EMR           *emr.Client
	EMRContext    *emrcontext.Engine
	// Messages sends messages to patients, and Reminders queues automatic ones; nil if no messages are sent.
	Messages  *messaging.Worker
	Reminders messaging.Reminders
	// Warehouse exports data to a warehouse; nil if not configured.
	Warehouse *warehouse.Engine
	// OnRescored receives the patients with a score that changed with time.
	OnRescored func(patientIDs []string)
	// Ladder decides the next step of untaken escalations.
	Ladder escalations.Ladder
	// Backup takes the nightly backup, verifies it and deletes old ones; nil if not configured.
	Backup func(ctx context.Context, app core.App) (removed int, err error)
	// VerifyBackup verifies the newest backup unless it was verified today, and returns the number verified; it may be nil.
	VerifyBackup func(ctx context.Context, app core.App) (verified int, err error)
	// OnRun receives the result of every run; it may be nil.
	OnRun func(job string, succeeded bool, began time.Time, took time.Duration)
	// SendMeans enables the weekly mean blood pressure for the EMR.
	SendMeans bool
	// Retention defines how long purged data is kept.
	Retention retention.Periods
	// AuditHead is the file with the head of the audit chain; "" for none.
	AuditHead string
	// Zone is the practice's time zone, in which daily times are.
	Zone  *time.Location
	Log   *slog.Logger
	Clock clockwork.Clock

	started time.Time // set by Start
}

// counts are the results of a run.
type counts = map[string]int

// disabled is the result of a run of a job that the settings disable, so a manual run does not just report "succeeded".
var disabled = counts{"off": 1}

// job is one row: its name, its schedule and its function.
type job struct {
	name string
	when schedule.Plan
	run  func(e Engines, ctx context.Context, app core.App) (counts, error)
}

// table lists all jobs. Source: specification, scheduled jobs; docs/decisions/jobs.md, "Scheduled jobs".
var table = []job{
	{"pending FHIR processing", schedule.Cron("*/5 * * * *"), sendDue},
	{"risk recalculation", schedule.Cron("0 * * * *"), rescore},
	{"overdue escalations", schedule.Cron("* * * * *"), sweepEscalations},
	{"snoozes and held alerts", schedule.Cron("* * * * *"), expireSnoozesAndHolds},
	{"patient holds", schedule.Cron("* * * * *"), endPatientHolds},
	{"patient messages", schedule.Cron("* * * * *"), sendMessages},
	{"ages", schedule.Cron("*/15 * * * *"), updateAges},
	{"template proposals", schedule.Daily(0, 20), proposeTemplates},
	{"mail delivery", schedule.Cron("*/5 * * * *"), sendMails},
	{"push delivery", schedule.Cron("*/5 * * * *"), sendPushes},
	{"reminders", schedule.Cron("*/15 * * * *"), announceReminders},
	{"stale push token cleanup", schedule.Weekly(time.Sunday, 3, 0), testTokens},
	{"EMR connection check", schedule.Cron("30 * * * *"), watchEMRConnection},
	{"EMR context", schedule.Cron("*/10 0-4 * * *"), readCharts}, // a part of the patients in each run
	{"hub check", schedule.Cron("* * * * *"), checkHubs},
	{missedReadings, schedule.Cron("*/15 * * * *"), checkMissed},
	{"silent devices", schedule.Cron("2-59/15 * * * *"), checkSilence}, // after the missed readings: their alerts may already cover it
	{staleReadings, schedule.Cron("7-59/15 * * * *"), checkStale},
	{"device billing", schedule.Daily(2, 0), bill(billing.DeviceJob)},
	{"smart billing engine", schedule.Cron("0 */4 * * *"), bill(billing.SmartJob)},
	{"billing sums", schedule.Daily(3, 0), recountBilling},
	{"billing evidence", schedule.Daily(3, 20), recheckEvidence}, // after the days are recounted
	{"running timers", schedule.Cron("*/5 * * * *"), stopTimers},
	{"reading sums", schedule.Daily(3, 10), recountReadings},
	{"audit verification", schedule.Daily(4, 0), verifyAudit},
	{"backup", schedule.Daily(1, 30), takeBackup},
	{"backup verification", schedule.Daily(5, 0), verifyBackup},
	{"retention purge", schedule.Daily(4, 30), purge},
	{"idempotency keys", schedule.Cron("25 * * * *"), purgeIdempotencyKeys},
	{"export cleanup", schedule.Cron("*/15 * * * *"), cleanExports},
	{"mean blood pressures", schedule.Daily(5, 30), sendMeans},
	{"EMR documents", schedule.Daily(5, 0), queueDocuments},
	{WarehouseExport, schedule.Daily(2, 40), exportWarehouse},
	{"database upkeep", schedule.Daily(3, 40), maintainDatabase},
}

// Schedule runs the table by time and on request.
type Schedule struct {
	gocron.Scheduler
	app     core.App
	engines Engines
}

// Start runs the table until the schedule is shut down; more adds options such as a monitor.
func Start(app core.App, e Engines, more ...gocron.SchedulerOption) (*Schedule, error) {
	if err := collections.AbandonJobs(app, e.Clock.Now()); err != nil {
		return nil, err
	}
	scheduler, err := gocron.NewScheduler(append(more, gocron.WithLocation(e.Zone), gocron.WithClock(e.Clock), gocron.WithStopTimeout(stopTimeout),
		gocron.WithGlobalJobOptions(gocron.WithSingletonMode(gocron.LimitModeReschedule),
			gocron.WithEventListeners(gocron.AfterJobRunsWithPanic(func(_ uuid.UUID, name string, _ any) {
				e.Log.Error("job panicked", slog.String("job", name))
			}))))...)
	if err != nil {
		return nil, fmt.Errorf("create scheduler: %w", err)
	}
	e.started = e.Clock.Now()
	for _, row := range table {
		_, err := scheduler.NewJob(row.when.Definition(), gocron.NewTask(func(ctx context.Context) { run(ctx, app, e, row) }), gocron.WithName(row.name))
		if err != nil {
			return nil, fmt.Errorf("schedule %s: %w", row.name, err)
		}
	}
	s := &Schedule{scheduler, app, e}
	if err := s.runMissed(); err != nil {
		return nil, err
	}
	scheduler.Start()
	return s, nil
}

// run records, executes and logs one run.
func run(ctx context.Context, app core.App, e Engines, row job) {
	if e.MayRun != nil && !e.MayRun() {
		return
	}
	started := e.Clock.Now()
	log := e.Log.With(slog.String("job", row.name))
	runID, ok, err := collections.StartJob(app, row.name, started)
	if err != nil {
		log.Error("job not started", slog.Any("error", err))
		return
	}
	if !ok {
		log.Warn("job not started: its last run is still running")
		return
	}
	finish(ctx, app, e, row, runID, started)
}

// finish executes a run that is recorded as running, and records its end.
func finish(ctx context.Context, app core.App, e Engines, row job, runID string, started time.Time) {
	log := e.Log.With(slog.String("job", row.name))
	failure := "panicked"
	var done counts
	defer func() {
		if err := collections.FinishJob(app, runID, done, failure, e.Clock.Now()); err != nil {
			log.Error("the scheduler could not record the end of a job", slog.Any("error", err))
		}
		if e.OnRun != nil {
			e.OnRun(row.name, failure == "", started, e.Clock.Since(started))
		}
	}()
	var err error
	done, err = row.run(e, ctx, app)
	failure = ""
	if err != nil {
		failure = "failed: see the log"
		if ctx.Err() != nil { // the service stops: the next start catches up
			failure = collections.AbandonedRun
		}
		log.Error("job failed", slog.Any("error", err), slog.Any("counts", done))
		return
	}
	log.Info("job done", slog.Any("counts", done), slog.Duration("took", e.Clock.Since(started)))
}

func sendDue(e Engines, ctx context.Context, app core.App) (counts, error) {
	transformed, err := e.Transmissions.RetryTransforms(ctx, app, transformsPerRun, e.Clock.Now().UTC())
	if err != nil {
		return nil, err
	}
	round, err := e.Transmissions.Sweep(ctx, app)
	if err == nil {
		err = emr.NoteSync(app, e.Clock.Now().UTC())
	}
	return counts{"transformed": transformed, "succeeded": round.Succeeded, "failed": round.Failed, "skipped": round.Skipped}, err
}

func rescore(e Engines, ctx context.Context, app core.App) (counts, error) {
	seen, changed, err := triage.RescoreAll(ctx, app, e.Clock.Now(), e.OnRescored)
	return counts{"seen": seen, "changed": changed}, err
}

// watchEMRConnection notifies administrators before the interactive connection expires.
func watchEMRConnection(e Engines, _ context.Context, app core.App) (counts, error) {
	ending, err := emr.WarnBeforeExpiry(app, e.EMR, e.Clock.Now().UTC())
	if ending {
		return counts{"ending": 1}, err
	}
	return counts{}, err
}

// sweepEscalations notifies of escalations and follow-ups that wait too long.
func sweepEscalations(e Engines, ctx context.Context, app core.App) (counts, error) {
	now := e.Clock.Now().UTC()
	swept, failed := e.Ladder.Sweep(ctx, app, now)
	due, err := alerts.RemindFollowUps(ctx, app, now)
	return counts{"overdue": swept.Waiting, "without_note": swept.Idle, "follow_ups": due}, errors.Join(failed, err)
}

// maintainDatabase replaces PocketBase's midnight job. It does not use that job's checkpoint, which blocks all writers during a read, and sets
// the same planner statistics every day.
func maintainDatabase(_ Engines, ctx context.Context, app core.App) (counts, error) {
	if _, err := app.NonconcurrentDB().NewQuery("PRAGMA wal_checkpoint(PASSIVE)").WithContext(ctx).Execute(); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return counts{}, collections.SetPlannerStatistics(app)
}

func sendMails(e Engines, ctx context.Context, app core.App) (counts, error) {
	round, err := e.Mailer.SendDue(ctx, app)
	return counts{"sent": round.Sent, "dropped": round.Dropped, "failed": round.Failed, "given_up": round.DeadLettered}, err
}

func sendPushes(e Engines, ctx context.Context, app core.App) (counts, error) {
	done, err := e.Dispatcher.SendDue(ctx, app)
	return counts{"told": done.Announced, "sent": done.Sent, "failed": done.Failed, "gone": done.ExpiredTokens, "again": done.Retried}, err
}

// announceReminders announces daily summaries and reminders that are due in the recipients' time zones.
func announceReminders(e Engines, _ context.Context, app core.App) (counts, error) {
	announced, err := notifications.Remind(app, e.Zone, e.Clock.Now().UTC())
	return counts{"announced": announced}, err
}

func testTokens(e Engines, ctx context.Context, app core.App) (counts, error) {
	done, err := e.Dispatcher.TestTokens(ctx, app)
	return counts{"expired": done.Expired, "unused": done.Unused, "tried": done.Tried, "gone": done.Gone}, err
}

// verifyAudit verifies the audit chain, stores its head in a file, and notifies administrators of a broken chain.
func verifyAudit(e Engines, _ context.Context, app core.App) (counts, error) {
	now := e.Clock.Now().UTC()
	result, err := audit.VerifyAndAppendHead(app, e.AuditHead, now)
	if err == nil && !result.Valid {
		err = notifications.NotifyOfBrokenAudit(app, *result.FirstInvalidID, now)
	}
	return counts{"checked": int(result.Checked)}, err
}

func takeBackup(e Engines, ctx context.Context, app core.App) (counts, error) {
	if e.Backup == nil {
		return disabled, nil
	}
	removed, err := e.Backup(ctx, app)
	if err != nil {
		return counts{"removed": removed}, err
	}
	return counts{"taken": 1, "removed": removed}, nil
}

func verifyBackup(e Engines, ctx context.Context, app core.App) (counts, error) {
	if e.VerifyBackup == nil {
		return disabled, nil
	}
	verified, err := e.VerifyBackup(ctx, app)
	return counts{"verified": verified}, err
}

// purge deletes rows past their retention period.
func purge(e Engines, ctx context.Context, app core.App) (counts, error) {
	return retention.Purge(ctx, app, e.Retention, e.Clock.Now().UTC())
}
