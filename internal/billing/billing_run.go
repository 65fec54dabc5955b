package billing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// Job is the work of a run.
type Job string

// The jobs. Source: specification, scheduled jobs; docs/decisions/billing.md, "Run billing".
const (
	DeviceJob Job = "device" // completed periods; missing items become warnings
	TimeJob   Job = "time"   // interactive time by month; missing items mean no entry
	SmartJob  Job = "smart"  // time, and missed device periods
	AllJobs   Job = "all"    // device and time
)

const (
	lockName = "billing engine"
	// lookBackDays is how long after its end a period is checked again for late data and entries. Source: docs/decisions/billing.md, "30-day period
	// and the 16 days (99454)".
	lookBackDays = 45
	// chunkSize is how many patients are processed together; small transactions let readings in between.
	chunkSize = 400
)

// Result is the outcome of a run.
type Result struct {
	StartedAt, FinishedAt time.Time
	Created               []CreatedEntry
	Skipped               []SkippedEntry
}

// Counts returns the figures of the result.
func (r Result) Counts() map[string]int {
	return map[string]int{"created": len(r.Created), "skipped": len(r.Skipped)}
}

// Run creates the entries that are due. All runs share a lock; if another run holds it, Run returns an invalid_state fault. Existing entries are
// never created again, so a run can be repeated at any time, and a run after an outage catches up on missed ones.
func (e *Engine) Run(ctx context.Context, app core.App, job Job, by audit.Actor, clock func() time.Time) (result Result, err error) {
	now := clock()
	lock, ok, err := collections.StartJob(app, lockName, now)
	if err != nil {
		return result, err
	}
	if !ok {
		return result, fault.State("invalid_state", "Billing is running already.")
	}
	r := &billingRun{Engine: e, ctx: ctx, app: app, now: now, counts: map[string]int{}, throttle: async.ThrottleWhile(e.ReadingsPending)}
	failure := "panicked"
	defer func() {
		err = errors.Join(err, collections.FinishJob(app, lock, r.counts, failure, clock()))
	}()
	err = r.execute(job)
	if err == nil {
		err = r.finishRun(by)
	}
	if failure = ""; err != nil {
		failure = "failed: see the log"
	}
	r.result.StartedAt, r.result.FinishedAt = now, clock()
	return r.result, err
}

// billingRun is a run in progress.
type billingRun struct {
	*Engine
	ctx      context.Context
	app      core.App
	now      time.Time
	tariff   priceList
	result   Result
	counts   map[string]int
	throttle *async.Throttle
}

func (r *billingRun) execute(job Job) (err error) {
	if r.tariff, err = r.loadPriceList(r.app); err != nil {
		return err
	}
	if job != TimeJob {
		if err := r.billDevices(job != SmartJob); err != nil {
			return err
		}
	}
	if job != DeviceJob {
		return r.billMonths()
	}
	return nil
}

// finishRun records the run and notifies billing of skipped entries.
func (r *billingRun) finishRun(by audit.Actor) error {
	r.counts["created"], r.counts["skipped"] = len(r.result.Created), len(r.result.Skipped)
	return r.app.RunInTransaction(func(tx core.App) error {
		err := audit.Append(tx, audit.Entry{
			Event: audit.BillingRun, Actor: by, ResourceType: audit.ResourceBillingRun,
			Changes: audit.Changes{"created": {New: len(r.result.Created)}, "skipped": {New: len(r.result.Skipped)}},
		}, r.now)
		if err != nil || len(r.result.Skipped) == 0 {
			return err
		}
		return notifications.Announce(tx, notifications.Announcement{
			Kind: notifications.BillingRunSkipped, Severity: "info",
			Body: fmt.Sprintf("Billing left out %d entries; see the report of unbilled activity.", len(r.result.Skipped)),
			Key:  "billing-skipped:" + r.Day(r.now),
		}, r.now)
	})
}

// firstDay returns the first day that a run checks: [lookBackDays] before the last successful run of its kind; "" if there was none.
func (r *billingRun) firstDay(kind string) (day string, err error) {
	last, err := collections.LastRunWithCount(r.app, lockName, kind)
	if err != nil {
		return "", err
	}
	if !last.IsZero() {
		return AddDays(min(r.Day(last), r.Day(r.now)), -lookBackDays), nil
	}
	return "", nil
}

// earliestDay is before every period.
const earliestDay = "1900-01-01"

// billDevices bills the 30-day periods that ended before today.
func (r *billingRun) billDevices(lenient bool) error {
	from, err := r.firstDay("patients")
	if err != nil {
		return err
	}
	if err := r.billAllPatients(Span{max(from, earliestDay), AddDays(r.Day(r.now), -1)}, lenient); err != nil || from <= earliestDay {
		return err
	}
	return r.billLateReadings(from, lenient)
}

// billLateReadings bills periods that ended before a day, for patients with a reading from that time stored since the last run: imported
// history, or a hub that was switched off. Source: docs/decisions/billing.md, "30-day period and the 16 days (99454)".
func (r *billingRun) billLateReadings(from string, lenient bool) error {
	last, err := collections.LastRunWithCount(r.app, lockName, "patients")
	if err != nil {
		return err
	}
	_, before := r.TimeRange(Span{from, from})
	ids, err := collections.PatientsWithLateReadings(r.app, last, before)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(ids, chunkSize) {
		if err := r.throttle.Rest(r.ctx); err != nil {
			return err
		}
		if err := r.billDeviceChunk(some, Span{earliestDay, AddDays(from, -1)}, lenient); err != nil {
			return err
		}
	}
	return nil
}

// billAllPatients bills the periods of all patients that end in a span.
func (r *billingRun) billAllPatients(span Span, lenient bool) error {
	for after := ""; ; {
		if err := r.throttle.Rest(r.ctx); err != nil {
			return err
		}
		ids, err := collections.PatientsWithDevices(r.app, false, after, chunkSize)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			r.counts["patients"] += 0 // report zero, too
			return nil
		}
		if err := r.billDeviceChunk(ids, span, lenient); err != nil {
			return err
		}
		after = ids[len(ids)-1]
		r.counts["patients"] += len(ids)
	}
}

// billDeviceChunk loads and plans outside any transaction, and stores in a short one.
func (r *billingRun) billDeviceChunk(ids []string, span Span, lenient bool) error {
	patients, err := r.loadFacts(r.app, ids, span.Start)
	if err != nil {
		return err
	}
	windows, err := r.unbilledPeriods(r.app, patients, span)
	if err != nil {
		return err
	}
	var due []entryDraft
	for _, id := range ids {
		if f := patients[id]; f != nil {
			more, skipped := r.draftDeviceEntries(f, windows[id], lenient)
			due, r.result.Skipped = append(due, more...), append(r.result.Skipped, skipped...)
		}
	}
	return r.store(func(tx core.App) ([]CreatedEntry, error) { return r.storeDrafts(tx, r.tariff, due, r.now) }, len(due))
}

// billMonths bills interactive time, month by month.
func (r *billingRun) billMonths() error {
	from, err := r.firstDay("months")
	if err != nil {
		return err
	}
	if from == "" {
		first, err := collections.FirstInteractiveTime(r.app)
		if err != nil {
			return err
		}
		if from = r.dayOfInstant(first); from == "" {
			from = r.Day(r.now)
		}
	}
	for month := monthOf(from); month.Start <= r.Day(r.now); month = monthOf(AddDays(month.End, 1)) {
		if err := r.billMonth(month); err != nil {
			return err
		}
		r.counts["months"]++
	}
	return nil
}

func (r *billingRun) billMonth(month Span) error {
	least := baseRule(FirstTwenty, month.End).MinMinutes
	if r.Enable2026Codes && r.Day(r.now) > month.End {
		least = baseRule(FirstTen, month.End).MinMinutes
	}
	from, to := r.instants(month)
	ids, err := collections.PatientsWithTime(r.app, from, to, least*60, r.timeRuleOf(month))
	if err != nil {
		return err
	}
	for some := range slices.Chunk(ids, chunkSize) {
		if err := r.throttle.Rest(r.ctx); err != nil {
			return err
		}
		due, err := r.patientsWithTimeDue(some, month)
		if err != nil {
			return err
		}
		err = r.store(func(tx core.App) ([]CreatedEntry, error) { return r.billTime(tx, r.tariff, due, month, false, r.now) }, len(due))
		if err != nil {
			return err
		}
	}
	return nil
}

// patientsWithTimeDue returns the patients with enough time for an entry, computed outside any transaction, and records what is skipped.
func (r *billingRun) patientsWithTimeDue(ids []string, month Span) (due []string, err error) {
	drafts, skipped, err := r.planTimeFor(r.app, ids, month, false, r.now)
	r.result.Skipped = append(r.result.Skipped, skipped...)
	for _, d := range drafts {
		due = append(due, d.patient.id)
	}
	return slices.Compact(due), err
}

// store runs work in a short transaction if there is anything to store.
func (r *billingRun) store(work func(tx core.App) ([]CreatedEntry, error), due int) error {
	if due == 0 {
		return nil
	}
	var created []CreatedEntry
	err := r.app.RunInTransaction(func(tx core.App) (err error) {
		created, err = work(tx)
		return err
	})
	r.result.Created = append(r.result.Created, created...)
	return err
}
