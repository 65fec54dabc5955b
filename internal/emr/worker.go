package emr

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/sync/semaphore"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// maxInflight bounds concurrent deliveries. The client paces requests; this many keep an unpaced EMR busy while responses take their time.
const maxInflight = 64

// maxRenderers bounds concurrent database reads: each reader beyond the few pooled connections opens one of its own, which costs more
// than what it reads.
const maxRenderers = 4

// roundSize bounds the deliveries of one round after a wake-up.
const roundSize = 500

// maxFailures bounds the failures that a round keeps, for any backlog.
const maxFailures = 1000

// retryPause groups retries that fall due shortly after one another, so that a long outage does not cause a round for each.
const retryPause = 200 * time.Millisecond

const defaultProbeInterval = 15 * time.Second

const defaultStopTimeout = 10 * time.Second

// EMR is the part of [Client] that the worker uses.
type EMR interface {
	Configured() bool
	// Prepare reads the EMR's CapabilityStatement if the last one is missing or outdated.
	Prepare(ctx context.Context)
	// CanReceive reports whether the EMR takes readings at all.
	CanReceive() bool
	// TakesReadings reports whether readings are sent one by one; otherwise they wait, for a document if CanReceive.
	TakesReadings() bool
	// TakesDocuments reports whether documents may be sent.
	TakesDocuments() bool
	CreateDocument(ctx context.Context, d DocumentCopy, resource []byte, requestID string) (Created, error)
	FindDocument(ctx context.Context, d DocumentCopy) (emrID string, found bool, err error)
	UpdateDocument(ctx context.Context, d DocumentCopy, emrID string, resource []byte, requestID string, ambiguous bool) (Created, error)
	// IsDocumentCurrent reports whether the EMR still shows a replaced document as current; true if
	// that is unknown.
	IsDocumentCurrent(ctx context.Context, emrID string) bool
	CreateObservation(ctx context.Context, observationID string, resource []byte, requestID string) (Created, error)
	FindObservation(ctx context.Context, observationID string, resource []byte) (emrID string, found bool, err error)
	LookUpObservation(ctx context.Context, observationID string, resource []byte) (emrID string, found bool, err error)
	UpdateObservation(ctx context.Context, emrID string, resource []byte, requestID string, ambiguous bool) (Created, error)
	HasObservation(ctx context.Context, emrID string, resource []byte) (hasContent, isKnown bool, err error)
	// Probe reports whether the EMR can be reached.
	Probe(ctx context.Context) error
}

// WorkerOptions are the settings of a Worker.
type WorkerOptions struct {
	EMR      EMR
	Schedule Schedule
	// ProbeInterval is the time between probes while the circuit breaker is open, with 20 % jitter; 0 means 15 s.
	ProbeInterval time.Duration
	// StopTimeout bounds the wait for responses of the EMR when the worker stops; 0 means 10 s.
	StopTimeout time.Duration
	// Load reads the observation of a delivery.
	Load func(app core.App, observationID string) (fhir.StoredObservation, error)
	// LoadMean reads a patient's mean blood pressure between two dates; nil where means are never sent.
	LoadMean func(app core.App, patientID, from, to string) (fhir.MeanBloodPressure, error)
	// Documents makes the reports for the chart.
	Documents DocumentOptions
	// HeartRate sends the pulse of a reading as an observation of its own, too.
	HeartRate bool
	Clock     func() time.Time
	Log       *slog.Logger
	// Spread returns numbers in [-1, 1]; nil means random ones.
	Jitter func() float64
	// Finished is called after the commit of each delivery; it may be nil and must not block.
	Finished func(Result)
}

// Result is the outcome of one delivery.
type Result struct {
	TransmissionID, ObservationID string
	EMRID                         string // "" when it failed
	ErrorCode, ErrorMessage       string
	RetryAt                       time.Time // zero when none
	StoredAt                      time.Time // of the observation; zero when unknown
	MoreDue                       bool      // this delivery is queued again because its reading changed, or another of the patient is due now
	Blocked                       bool      // nothing was sent: the delivery waits until the patient is linked
}

// Failed reports whether the delivery failed.
func (r Result) Failed() bool { return r.ErrorCode != "" }

// Worker delivers what is due, after a wake-up or a sweep.
type Worker struct {
	WorkerOptions
	async.Signal
	// inflight bounds deliveries across all rounds, so that wake-ups, sweeps and manual requests share the EMR and none waits for
	// another round to end
	inflight  *semaphore.Weighted
	rendering chan struct{} // held while reading the database
	manual    chan Leased   // leased for a person; see Transmit
	results   *async.GroupCommit[deliveryResult, Result]
	breaker   *circuitBreaker
	orderMu   sync.Mutex // held while choosing deliveries in order
	// leases are this worker's leased deliveries and their patients: they may be slow, but are not stuck.
	leases             sync.Map
	leaseMu            sync.RWMutex // held from the lease until it is in leases
	hasAnnounced       atomic.Bool  // administrators were notified that the EMR accepts no readings
	hasResumedReadings atomic.Bool  // no reading is suspended
	startedAt          atomic.Int64 // Unix seconds of the start of Run, 0 while it does not run
	// sendCtx ends StopTimeout after the worker is stopped; abortSends ends it.
	sendCtx    context.Context
	abortSends context.CancelFunc
}

// NewWorker returns a worker; Run starts it.
func NewWorker(o WorkerOptions) *Worker {
	if o.Jitter == nil {
		o.Jitter = func() float64 { return 2*rand.Float64() - 1 } //nolint:gosec // spreads retries, guards nothing
	}
	w := &Worker{
		WorkerOptions: o, Signal: async.NewSignal(), inflight: semaphore.NewWeighted(maxInflight), manual: make(chan Leased, maxManual),
		rendering: make(chan struct{}, maxRenderers), breaker: newCircuitBreaker(cmp.Or(o.ProbeInterval, defaultProbeInterval), o.Jitter, o.Log),
	}
	w.results = async.NewGroupCommit(async.GroupOptions[deliveryResult, Result]{Store: w.store, OnDone: w.publish, Log: o.Log})
	w.sendCtx, w.abortSends = context.WithCancel(context.Background()) //nolint:gosec // Run calls abortSends when it ends
	return w
}

// Run recovers what an earlier process left in processing, then delivers after each wake-up and when a retry falls due, until ctx ends.
// It sends a long backlog in several rounds, so that retries that fall due in the meantime get their turn.
func (w *Worker) Run(ctx context.Context, app core.App) {
	if err := w.recover(app); err != nil {
		w.Log.Error("EMR worker could not recover deliveries of an earlier process; they are retried once stuck", slog.Any("error", err))
	}
	w.restoreOutage(app)
	context.AfterFunc(ctx, func() { time.AfterFunc(cmp.Or(w.StopTimeout, defaultStopTimeout), w.abortSends) })
	w.startedAt.Store(w.Clock().Unix())
	defer w.startedAt.Store(0)
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { w.sendManual(ctx, app) })
	background.Go(func() { w.reconcileLoop(ctx, app) })
	var retry <-chan time.Time
	for w.Wake(); ; {
		select {
		case <-ctx.Done():
			return
		case <-w.Signal:
		case <-retry:
		}
		if !w.EMR.Configured() {
			continue // each reading wakes the worker; skip even the count
		}
		w.prepare(ctx)
		w.logError(w.suspendOrResumeReadings(app), "EMR worker could not set what readings wait for; it retries with the next round")
		if !w.canSend(app) {
			retry = w.probeWhileSuspended(ctx, app)
			continue
		}
		retry = w.step(ctx, app)
	}
}

// step sends what is due and returns a channel that fires when more is due; nil when only a wake-up or the sweep can show more.
func (w *Worker) step(ctx context.Context, app core.App) <-chan time.Time {
	if wait := w.probeIfDue(ctx, app); wait > 0 {
		return time.After(wait)
	}
	round, err := w.round(ctx, app, roundSize, byWakeUp)
	switch ended := round.Succeeded + round.Failed + round.Skipped; {
	case err != nil:
		if ctx.Err() == nil {
			w.Log.Error("EMR worker could not send deliveries; the next sweep retries", slog.Any("error", err))
		}
		return nil // the sweep tries again
	case w.breaker.isOpen():
		w.logError(w.announceOutage(app), "EMR worker could not announce the outage; it retries with the next probe")
		return time.After(max(w.breaker.untilProbe(w.Clock()), time.Millisecond))
	case w.breaker.isInOrder() && ended == 0:
		w.logError(w.endOutage(app), "EMR worker could not announce the end of the outage; the next round retries")
	case w.breaker.isInOrder(), ended >= roundSize:
		w.Wake()
	}
	return w.nextRetry(app)
}

// nextRetry returns a channel that fires when the next retry falls due; nil when there is none, or on an error, which the sweep makes up for.
func (w *Worker) nextRetry(app core.App) <-chan time.Time {
	if !w.EMR.Configured() || !w.EMR.CanReceive() {
		return nil
	}
	at, err := collections.NextTransmissionRetry(app)
	if err != nil || at.IsZero() {
		return nil
	}
	return time.After(max(at.Sub(w.Clock()), retryPause))
}

// RunningSince returns when the worker started, to the second; the zero time while it does not run.
func (w *Worker) RunningSince() time.Time {
	if seconds := w.startedAt.Load(); seconds != 0 {
		return time.Unix(seconds, 0).UTC()
	}
	return time.Time{}
}

// SendCounts counts the deliveries of one pass.
type SendCounts struct {
	Succeeded, Failed int
	// Failures are the first failed deliveries, at most maxFailures.
	Failures []Result
	// Skipped counts due deliveries that were not attempted and used up no attempt: no EMR is configured, the circuit breaker is open, or
	// the patient is not linked.
	Skipped int
}

// SendDue delivers what is due, oldest first, at most limit deliveries (0: all), at a person's request. Each is sent at most once per
// call. While the circuit breaker is open one trial is sent, and the rest is skipped unless the trial closes it.
// When ctx ends, deliveries under way are finished and the rest stays due.
func (w *Worker) SendDue(ctx context.Context, app core.App, limit int) (SendCounts, error) {
	return w.sendAndCount(ctx, app, limit, byPerson)
}

// Sweep is SendDue for the periodic job; it sends no trial while the circuit breaker is open.
func (w *Worker) Sweep(ctx context.Context, app core.App) (SendCounts, error) {
	return w.sendAndCount(ctx, app, 0, byWakeUp)
}

// sendAndCount sends a round and counts what it skipped.
func (w *Worker) sendAndCount(ctx context.Context, app core.App, limit int, by trigger) (round SendCounts, err error) {
	w.prepare(ctx)
	if w.EMR.Configured() {
		err = w.suspendOrResumeReadings(app)
	}
	canSend := w.EMR.Configured() && w.canSend(app)
	if canSend && err == nil {
		round, err = w.round(ctx, app, limit, by)
	}
	if err == nil && (!canSend || w.breaker.isOpen()) {
		var due int
		due, err = collections.DueTransmissions(app, w.Clock())
		round.Skipped += due
	}
	if err == nil && !canSend {
		var parked int
		parked, err = collections.CountSuspendedReadings(app)
		round.Skipped += parked
	}
	return round, err
}

func (w *Worker) round(ctx context.Context, app core.App, limit int, by trigger) (SendCounts, error) {
	if err := errors.Join(w.failStuck(app), releaseStalledTurns(app)); err != nil {
		return SendCounts{}, err
	}
	var (
		group sync.WaitGroup
		tally tally
		s     = orderedLeases{trigger: by, began: w.Clock()}
		ended = make(chan struct{}, 1)
	)
	for taken, tried := 0, false; ctx.Err() == nil && !tally.hasErrors(); {
		select { // a running probe must decide the last failure before more is sent
		case <-w.breaker.probeFinished():
		case <-ctx.Done():
		}
		most := w.breaker.capacity(by != byWakeUp && !tried)
		if limit > 0 {
			most = min(most, limit-taken)
		}
		free := w.acquireInflight(ctx, most)
		if free == 0 {
			break
		}
		isTrial := !w.breaker.isClosed()
		leased, busy, err := w.leaseNext(app, &s, free)
		w.inflight.Release(int64(free - len(leased)))
		if err != nil {
			tally.add(Result{}, err)
		}
		if busy {
			pause(ctx, ended)
			continue
		}
		if len(leased) == 0 {
			break
		}
		taken += len(leased)
		for _, c := range leased {
			w.start(ctx, app, c, &group, func(s Result, err error) {
				tally.add(s, err)
				select {
				case ended <- struct{}{}:
				default:
				}
			})
		}
		if tried = tried || isTrial; isTrial {
			group.Wait()
		}
	}
	group.Wait()
	return tally.round, errors.Join(errors.Join(tally.errs...), ctx.Err())
}

// lease records the leased deliveries as this worker's leases.
func (w *Worker) lease(take func() ([]Leased, error)) ([]Leased, error) {
	w.leaseMu.RLock()
	defer w.leaseMu.RUnlock()
	leased, err := take()
	for _, c := range leased {
		w.leases.Store(c.ID, c.PatientID)
	}
	return leased, err
}

// recover requeues what an earlier process left in processing, except this worker's own leases.
func (w *Worker) recover(app core.App) error {
	w.leaseMu.Lock()
	defer w.leaseMu.Unlock()
	own := []string{}
	w.leases.Range(func(id, _ any) bool { own = append(own, id.(string)); return true })
	_, err := RequeueInterrupted(app, own, w.Clock())
	return err
}

// start sends a leased delivery in the background. The caller has acquired its place in inflight; start releases it and calls ended.
func (w *Worker) start(ctx context.Context, app core.App, c Leased, group *sync.WaitGroup, ended func(Result, error)) {
	group.Go(func() {
		defer w.inflight.Release(1)
		defer w.leases.Delete(c.ID)
		ended(w.send(ctx, app, c))
	})
}

// acquireInflight waits for one free place and takes up to most; 0 when most is 0 or ctx ends.
func (w *Worker) acquireInflight(ctx context.Context, most int) (taken int) {
	if most <= 0 {
		return 0
	}
	if w.inflight.Acquire(ctx, 1) != nil {
		return 0
	}
	for taken = 1; taken < most && w.inflight.TryAcquire(1); taken++ {
	}
	return taken
}

// failStuck fails the deliveries that were in processing for too long, so that they are retried by the schedule.
func (w *Worker) failStuck(app core.App) error {
	stuck, err := Stuck(app, w.Clock())
	if err != nil {
		return err
	}
	for _, c := range stuck {
		if _, own := w.leases.Load(c.ID); own {
			continue
		}
		interrupted := &Error{Code: CodeTimeout, Message: "Delivery was interrupted", Ambiguous: true}
		_, err := w.record(app, c, deliveryOutcome{err: interrupted, startedAt: collections.ParseInstant(c.LeasedAt)})
		if err != nil && !errors.Is(err, ErrLeaseExpired) { // the worker was only slow, and has recorded the result
			return err
		}
	}
	return nil
}
