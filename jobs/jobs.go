// Package jobs is the door for the clock: gocron calls one engine function for each row of the table. Every run is noted
// with what it did; a job never runs beside itself, here or in another process, and what was missed while the service
// was down is caught up from the state of the database.
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
	"github.com/vigilhealth/vigil/internal/connection"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/exports"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/retention"
	"github.com/vigilhealth/vigil/internal/transmissions"
	"github.com/vigilhealth/vigil/internal/triage"
)

// transformsPerRun bounds the FHIR forms that one run tries again to make.
const transformsPerRun = 500

// stopTimeout bounds the wait for running jobs when the service stops.
const stopTimeout = 20 * time.Second

// Engines is what the jobs call, built once in cmd.
type Engines struct {
	Transmissions *transmissions.Worker
	Mailer        *notifications.Mailer
	Dispatcher    *notifications.Dispatcher
	Devices       *devices.Engine
	Billing       *billing.Engine
	Readings      *observations.Engine
	Exports       *exports.Engine
	EMR           *emr.Client
	// Rescored is told whose place the clock has changed.
	Rescored func(patientIDs []string)
	// Ladder says what follows of escalations that nobody takes.
	Ladder escalations.Ladder
	// Backup takes the nightly backup and removes old ones; nil when there is none.
	Backup func(ctx context.Context, app core.App) (removed int, err error)
	// Ran is told of every run; it may be nil.
	Ran func(job string, succeeded bool, began time.Time, took time.Duration)
	// SendMeans has the mean blood pressure of each week sent to the EMR.
	SendMeans bool
	// Retention says how long what is purged is kept.
	Retention retention.Periods
	// AuditHead is the file that keeps the head of the audit chain; "" for none.
	AuditHead string
	// Zone is the practice's: daily times are in it.
	Zone  *time.Location
	Log   *slog.Logger
	Clock clockwork.Clock

	started time.Time // set by Start
}

// counts say what a run did.
type counts = map[string]int

// job is one row: its name, when it runs and what it calls.
type job struct {
	name string
	when gocron.JobDefinition
	run  func(e Engines, ctx context.Context, app core.App) (counts, error)
}

// table is every job. Source: specification, scheduled jobs; docs/decisions/jobs.md, "Scheduled jobs".
var table = []job{
	{"pending FHIR processing", gocron.CronJob("*/5 * * * *", false), sendDue},
	{"risk recalculation", gocron.CronJob("0 * * * *", false), rescore},
	{"overdue escalations", gocron.CronJob("* * * * *", false), remind},
	{"snoozes and held alerts", gocron.CronJob("* * * * *", false), endWaits},
	{"ages", gocron.CronJob("*/15 * * * *", false), keepAges},
	{"mail delivery", gocron.CronJob("*/5 * * * *", false), sendMails},
	{"push delivery", gocron.CronJob("*/5 * * * *", false), sendPushes},
	{"reminders", gocron.CronJob("*/15 * * * *", false), remindPeople},
	{"stale push token cleanup", gocron.WeeklyJob(1, gocron.NewWeekdays(time.Sunday), gocron.NewAtTimes(gocron.NewAtTime(3, 0, 0))), testTokens},
	{"EMR connection check", gocron.CronJob("30 * * * *", false), watchEMRConnection},
	{"hub check", gocron.CronJob("* * * * *", false), checkHubs},
	{missedReadings, gocron.CronJob("*/15 * * * *", false), checkMissed},
	{"silent devices", gocron.CronJob("2-59/15 * * * *", false), checkSilence}, // after the missed readings, which may say as much
	{staleReadings, gocron.CronJob("7-59/15 * * * *", false), checkStale},
	{"device billing", gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(2, 0, 0))), bill(billing.DeviceJob)},
	{"smart billing engine", gocron.CronJob("0 */4 * * *", false), bill(billing.SmartJob)},
	{"billing sums", gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(3, 0, 0))), recountBilling},
	{"billing evidence", gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(3, 20, 0))), recheckEvidence}, // after the days were counted anew
	{"running timers", gocron.CronJob("*/5 * * * *", false), stopTimers},
	{"reading sums", gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(3, 10, 0))), recountReadings},
	{"audit verification", gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(4, 0, 0))), verifyAudit},
	{"backup", gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(1, 30, 0))), takeBackup},
	{"retention purge", gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(4, 30, 0))), purge},
	{"idempotency keys", gocron.CronJob("25 * * * *", false), forgetKeys},
	{"export cleanup", gocron.CronJob("*/15 * * * *", false), cleanExports},
	{"mean blood pressures", gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(5, 30, 0))), sendMeans},
	{"database upkeep", gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(3, 40, 0))), keepDatabase},
}

// Start runs the table by the clock until the scheduler is shut down.
func Start(app core.App, e Engines) (gocron.Scheduler, error) {
	if err := collections.AbandonJobs(app, e.Clock.Now()); err != nil {
		return nil, err
	}
	scheduler, err := gocron.NewScheduler(gocron.WithLocation(e.Zone), gocron.WithClock(e.Clock), gocron.WithStopTimeout(stopTimeout),
		gocron.WithGlobalJobOptions(gocron.WithSingletonMode(gocron.LimitModeReschedule),
			gocron.WithEventListeners(gocron.AfterJobRunsWithPanic(func(_ uuid.UUID, name string, _ any) {
				e.Log.Error("job panicked", slog.String("job", name))
			}))))
	if err != nil {
		return nil, fmt.Errorf("make scheduler: %w", err)
	}
	e.started = e.Clock.Now()
	for _, row := range table {
		_, err := scheduler.NewJob(row.when, gocron.NewTask(func(ctx context.Context) { run(ctx, app, e, row) }), gocron.WithName(row.name))
		if err != nil {
			return nil, fmt.Errorf("schedule %s: %w", row.name, err)
		}
	}
	scheduler.Start()
	return scheduler, nil
}

// run notes, calls and logs one run.
func run(ctx context.Context, app core.App, e Engines, row job) {
	started := e.Clock.Now()
	log := e.Log.With(slog.String("job", row.name))
	runID, ok, err := collections.StartJob(app, row.name, started)
	if err != nil {
		log.Error("job not started", slog.Any("error", err))
		return
	}
	if !ok {
		log.Warn("job not started: its last run is still under way")
		return
	}
	failure := "panicked"
	var done counts
	defer func() {
		if err := collections.FinishJob(app, runID, done, failure, e.Clock.Now()); err != nil {
			log.Error("job not finished", slog.Any("error", err))
		}
		if e.Ran != nil {
			e.Ran(row.name, failure == "", started, e.Clock.Since(started))
		}
	}()
	done, err = row.run(e, ctx, app)
	failure = ""
	if err != nil {
		failure = "failed: see the log"
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
		err = transmissions.NoteSync(app, e.Clock.Now().UTC())
	}
	return counts{"transformed": transformed, "succeeded": round.Succeeded, "failed": round.Failed, "skipped": round.Skipped}, err
}

func rescore(e Engines, ctx context.Context, app core.App) (counts, error) {
	seen, changed, err := triage.RescoreAll(ctx, app, e.Clock.Now(), e.Rescored)
	return counts{"seen": seen, "changed": changed}, err
}

// watchEMRConnection tells the administrators before the interactive connection ends.
func watchEMRConnection(e Engines, _ context.Context, app core.App) (counts, error) {
	ending, err := connection.WarnOfEnd(app, e.EMR, e.Clock.Now().UTC())
	if ending {
		return counts{"ending": 1}, err
	}
	return counts{}, err
}

// remind tells of what waits for an answer longer than it should.
func remind(e Engines, ctx context.Context, app core.App) (counts, error) {
	now := e.Clock.Now().UTC()
	swept, failed := e.Ladder.Sweep(ctx, app, now)
	due, err := alerts.RemindFollowUps(ctx, app, now)
	return counts{"overdue": swept.Waiting, "without_note": swept.Idle, "follow_ups": due}, errors.Join(failed, err)
}

// keepDatabase does what PocketBase's own midnight job did, without its checkpoint that holds up every writer while
// anybody reads, and with statistics that are the same every day.
func keepDatabase(_ Engines, ctx context.Context, app core.App) (counts, error) {
	if _, err := app.NonconcurrentDB().NewQuery("PRAGMA wal_checkpoint(PASSIVE)").WithContext(ctx).Execute(); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return counts{}, collections.SetPlannerStatistics(app)
}

func sendMails(e Engines, ctx context.Context, app core.App) (counts, error) {
	round, err := e.Mailer.SendDue(ctx, app)
	return counts{"sent": round.Sent, "dropped": round.Dropped, "failed": round.Failed, "given_up": round.GivenUp}, err
}

func sendPushes(e Engines, ctx context.Context, app core.App) (counts, error) {
	done, err := e.Dispatcher.SendDue(ctx, app)
	return counts{"told": done.Told, "sent": done.Sent, "failed": done.Failed, "gone": done.Gone, "again": done.Again}, err
}

// remindPeople announces daily summaries and reminders whose time has come where people are.
func remindPeople(e Engines, _ context.Context, app core.App) (counts, error) {
	announced, err := notifications.Remind(app, e.Zone, e.Clock.Now().UTC())
	return counts{"announced": announced}, err
}

func testTokens(e Engines, ctx context.Context, app core.App) (counts, error) {
	done, err := e.Dispatcher.TestTokens(ctx, app)
	return counts{"expired": done.Expired, "unused": done.Unused, "tried": done.Tried, "gone": done.Gone}, err
}

// verifyAudit walks the audit chain, keeps its head elsewhere, and tells the administrators when it does not hold.
func verifyAudit(e Engines, _ context.Context, app core.App) (counts, error) {
	now := e.Clock.Now().UTC()
	result, err := audit.VerifyAndKeepHead(app, e.AuditHead, now)
	if err == nil && !result.Valid {
		err = notifications.NotifyOfBrokenAudit(app, *result.FirstInvalidID, now)
	}
	return counts{"checked": int(result.Checked)}, err
}

func takeBackup(e Engines, ctx context.Context, app core.App) (counts, error) {
	if e.Backup == nil {
		return counts{"taken": 0}, nil
	}
	removed, err := e.Backup(ctx, app)
	return counts{"taken": 1, "removed": removed}, err
}

// purge removes what its retention period has passed, of the kinds that need not be kept.
func purge(e Engines, ctx context.Context, app core.App) (counts, error) {
	return retention.Purge(ctx, app, e.Retention, e.Clock.Now().UTC())
}
