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

// senders bounds the deliveries under way at once. Pacing towards the EMR is the client's business; this many keep an
// unpaced EMR busy while each answer takes its time.
const senders = 64

// renderers bounds how many read the database at once: every reader beyond the few connections that are kept opens one of
// its own, which costs more than what it reads.
const renderers = 4

// roundSize bounds how many a woken round sends.
const roundSize = 500

// mostFailures bounds what a round remembers of those that failed, whatever the backlog.
const mostFailures = 1000

// retryPause gathers retries that fall due one shortly after the other, so that a long outage does not make a round of each.
const retryPause = 200 * time.Millisecond

const defaultProbeInterval = 15 * time.Second

const defaultStopPatience = 10 * time.Second

// EMR is what the worker needs of the EMR client.
type EMR interface {
	Configured() bool
	CreateObservation(ctx context.Context, observationID string, resource []byte, requestID string) (Created, error)
	FindObservation(ctx context.Context, observationID string) (emrID string, found bool, err error)
	LookUpObservation(ctx context.Context, observationID string) (emrID string, found bool, err error)
	UpdateObservation(ctx context.Context, emrID string, resource []byte, requestID string, ambiguous bool) (Created, error)
	HasObservation(ctx context.Context, emrID string, resource []byte) (has, known bool, err error)
	// Probe reports whether the EMR can be reached.
	Probe(ctx context.Context) error
}

// WorkerOptions of a worker.
type WorkerOptions struct {
	EMR      EMR
	Schedule Schedule
	// ProbeInterval lies between two looks at an EMR that is down, give or take a fifth; 0 means 15 s.
	ProbeInterval time.Duration
	// StopPatience bounds the wait for the EMR's answers when the worker stops, whoever asked for them; 0 means 10 s.
	StopPatience time.Duration
	// Load reads the observation behind a transmission.
	Load func(app core.App, observationID string) (fhir.Stored, error)
	// LoadMean reads the mean blood pressure of a patient from one date to another; nil where means are never sent.
	LoadMean func(app core.App, patientID, from, to string) (fhir.Mean, error)
	// HeartRate has the pulse of a reading sent as an observation of its own, too.
	HeartRate bool
	Clock     func() time.Time
	Log       *slog.Logger
	// Spread draws from [-1, 1]; nil means at random.
	Spread func() float64
	// Finished is told of each delivery, after its commit; it may be nil and must not block.
	Finished func(Result)
}

// Result is how one delivery ended.
type Result struct {
	TransmissionID, ObservationID string
	EMRID                         string // "" when it failed
	ErrorCode, ErrorMessage       string
	RetryAt                       time.Time // zero when none
	StoredAt                      time.Time // of the observation; zero when it is not known
	Again                         bool      // it waits again, for what has changed meanwhile; or another of the patient is due by it
	Held                          bool      // nothing was attempted: it waits until the EMR knows the patient
}

// Failed reports whether the delivery failed.
func (s Result) Failed() bool { return s.ErrorCode != "" }

// Worker delivers what is due: woken after a commit, and swept by the clock in case a wake was lost.
type Worker struct {
	WorkerOptions
	async.Signal
	// slots are held by deliveries under way, whichever round they belong to, so that woken, swept and asked-for rounds
	// share the EMR and none waits for the end of another
	slots     *semaphore.Weighted
	rendering chan struct{} // held by those who read the database
	asked     chan Claimed  // claimed for a person; see Transmit
	endings   *async.Group[endedDelivery, Result]
	line      *circuitBreaker
	ordering  sync.Mutex // held by whoever chooses what goes next in order
	// own are the claims under way here and their patients: slow they may be, lost they are not.
	own      sync.Map
	claiming sync.RWMutex // held from a claim until it is known as our own
	since    atomic.Int64 // Unix seconds of the start of Run, 0 while it does not run
	// patience ends some time after the worker was told to stop; giveUp ends it.
	patience context.Context
	giveUp   context.CancelFunc
}

// NewWorker returns a worker; Run starts it.
func NewWorker(o WorkerOptions) *Worker {
	if o.Spread == nil {
		o.Spread = func() float64 { return 2*rand.Float64() - 1 } //nolint:gosec // spreads retries, guards nothing
	}
	w := &Worker{
		WorkerOptions: o, Signal: async.NewSignal(), slots: semaphore.NewWeighted(senders), asked: make(chan Claimed, mostAsked),
		rendering: make(chan struct{}, renderers), line: newCircuitBreaker(cmp.Or(o.ProbeInterval, defaultProbeInterval), o.Spread, o.Log),
	}
	w.endings = async.NewGroup(async.GroupOptions[endedDelivery, Result]{Store: w.store, After: w.tell, Log: o.Log})
	w.patience, w.giveUp = context.WithCancel(context.Background()) //nolint:gosec // Run calls giveUp when it ends
	return w
}

// Run takes up what an earlier process left behind, then delivers whenever it is woken or a retry falls due, until ctx ends. A
// long backlog is sent in several rounds, so that retries that fall due meanwhile get their turn.
func (w *Worker) Run(ctx context.Context, app core.App) {
	if err := w.recover(app); err != nil {
		w.Log.Error("transmissions not recovered", slog.Any("error", err))
	}
	w.resume(app)
	context.AfterFunc(ctx, func() { time.AfterFunc(cmp.Or(w.StopPatience, defaultStopPatience), w.giveUp) })
	w.since.Store(w.Clock().Unix())
	defer w.since.Store(0)
	var asked sync.WaitGroup
	defer asked.Wait()
	asked.Go(func() { w.sendAsked(ctx, app) })
	asked.Go(func() { w.watchDoubts(ctx, app) })
	var retry <-chan time.Time
	for w.Wake(); ; {
		select {
		case <-ctx.Done():
			return
		case <-w.Signal:
		case <-retry:
		}
		if !w.EMR.Configured() {
			continue // each reading wakes us: nothing is even counted
		}
		retry = w.step(ctx, app)
	}
}

// step does what is to be done now, and returns what fires when there is more; nil when only a wake or the sweep can tell.
func (w *Worker) step(ctx context.Context, app core.App) <-chan time.Time {
	if wait := w.probe(ctx, app); wait > 0 {
		return time.After(wait)
	}
	round, err := w.round(ctx, app, roundSize, woken)
	switch ended := round.Succeeded + round.Failed + round.Skipped; {
	case err != nil:
		if ctx.Err() == nil {
			w.Log.Error("transmissions not sent", slog.Any("error", err))
		}
		return nil // the sweep tries again
	case w.line.isDown():
		w.report(w.tellOfOutage(app), "outage not told")
		return time.After(max(w.line.untilProbe(w.Clock()), time.Millisecond))
	case w.line.inOrder() && ended == 0:
		w.report(w.endOutage(app), "end of an outage not told")
	case w.line.inOrder(), ended >= roundSize:
		w.Wake()
	}
	return w.nextRetry(app)
}

// nextRetry fires when the next retry falls due; never when there is none, or when it cannot be told, which the sweep makes up for.
func (w *Worker) nextRetry(app core.App) <-chan time.Time {
	if !w.EMR.Configured() {
		return nil
	}
	at, err := collections.NextTransmissionRetry(app)
	if err != nil || at.IsZero() {
		return nil
	}
	return time.After(max(at.Sub(w.Clock()), retryPause))
}

// RunningSince says when the worker began, to the second; the zero time while it does not run.
func (w *Worker) RunningSince() time.Time {
	if seconds := w.since.Load(); seconds != 0 {
		return time.Unix(seconds, 0).UTC()
	}
	return time.Time{}
}

// Round is what one pass over the due transmissions did.
type Round struct {
	Succeeded, Failed int
	// Failures are the first of those that failed, at most mostFailures.
	Failures []Result
	// Skipped counts what was due while no EMR is configured or the line is down, or of patients whom the EMR does not know: nothing is attempted
	// then, and no slot is used.
	Skipped int
}

// SendDue delivers what is due, oldest first, at most limit records (0: all), because a person asked for it. Each is sent at most once per
// call. While the line is down one is tried, and the rest is skipped if that shows that it still is.
// When ctx ends, what is under way is finished and the rest stays due.
func (w *Worker) SendDue(ctx context.Context, app core.App, limit int) (Round, error) {
	return w.counted(ctx, app, limit, asked)
}

// Sweep is SendDue for the clock, which tries nothing while the line is down.
func (w *Worker) Sweep(ctx context.Context, app core.App) (Round, error) {
	return w.counted(ctx, app, 0, woken)
}

// counted sends a round and counts what it skipped.
func (w *Worker) counted(ctx context.Context, app core.App, limit int, how manner) (round Round, err error) {
	configured := w.EMR.Configured()
	if configured {
		round, err = w.round(ctx, app, limit, how)
	}
	if err == nil && (!configured || w.line.isDown()) {
		var due int
		due, err = collections.DueTransmissions(app, w.Clock())
		round.Skipped += due
	}
	return round, err
}

func (w *Worker) round(ctx context.Context, app core.App, limit int, how manner) (Round, error) {
	if err := errors.Join(w.failStuck(app), resumeTurns(app)); err != nil {
		return Round{}, err
	}
	var (
		group sync.WaitGroup
		tally tally
		s     = sequence{manner: how, began: w.Clock()}
		ended = make(chan struct{}, 1)
	)
	for taken, tried := 0, false; ctx.Err() == nil && !tally.broken(); {
		select { // whose fault a failure is must be known before more is sent
		case <-w.line.looking():
		case <-ctx.Done():
		}
		most := w.line.room(how != woken && !tried)
		if limit > 0 {
			most = min(most, limit-taken)
		}
		free := w.takeSlots(ctx, most)
		if free == 0 {
			break
		}
		alone := !w.line.proven()
		claimed, busy, err := w.next(app, &s, free)
		w.slots.Release(int64(free - len(claimed)))
		if err != nil {
			tally.add(Result{}, err)
		}
		if busy {
			pause(ctx, ended)
			continue
		}
		if len(claimed) == 0 {
			break
		}
		taken += len(claimed)
		for _, c := range claimed {
			w.start(ctx, app, c, &group, func(s Result, err error) {
				tally.add(s, err)
				select {
				case ended <- struct{}{}:
				default:
				}
			})
		}
		if tried = tried || alone; alone {
			group.Wait()
		}
	}
	group.Wait()
	return tally.round, errors.Join(errors.Join(tally.errs...), ctx.Err())
}

// claim notes what it claims as our own.
func (w *Worker) claim(take func() ([]Claimed, error)) ([]Claimed, error) {
	w.claiming.RLock()
	defer w.claiming.RUnlock()
	claimed, err := take()
	for _, c := range claimed {
		w.own.Store(c.ID, c.PatientID)
	}
	return claimed, err
}

// recover takes up what an earlier process left behind; what this one has claimed already is not that.
func (w *Worker) recover(app core.App) error {
	w.claiming.Lock()
	defer w.claiming.Unlock()
	own := []string{}
	w.own.Range(func(id, _ any) bool { own = append(own, id.(string)); return true })
	_, err := Recover(app, own, w.Clock())
	return err
}

// start sends a claimed transmission in the background, in a slot that the caller has taken, and says how it ended.
func (w *Worker) start(ctx context.Context, app core.App, c Claimed, group *sync.WaitGroup, ended func(Result, error)) {
	group.Go(func() {
		defer w.slots.Release(1)
		defer w.own.Delete(c.ID)
		ended(w.send(ctx, app, c))
	})
}

// tally gathers what came of the deliveries of one round.
type tally struct {
	lock  sync.Mutex
	round Round
	errs  []error
}

func (t *tally) add(s Result, err error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	switch {
	case errors.Is(err, ErrLost): // somebody else's now, and counted there
	case err != nil:
		t.errs = append(t.errs, err)
	case s.Held:
		t.round.Skipped++
	case s.Failed():
		t.round.Failed++
		if len(t.round.Failures) < mostFailures {
			t.round.Failures = append(t.round.Failures, s)
		}
	default:
		t.round.Succeeded++
	}
}

// broken: the database fails us, so that sending more would only make more records ambiguous.
func (t *tally) broken() bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	return len(t.errs) > 0
}

// takeSlots waits for a free slot and takes whatever else is free, up to most; 0 when there is nothing to take or ctx ends.
func (w *Worker) takeSlots(ctx context.Context, most int) (taken int) {
	if most <= 0 {
		return 0
	}
	if w.slots.Acquire(ctx, 1) != nil {
		return 0
	}
	for taken = 1; taken < most && w.slots.TryAcquire(1); taken++ {
	}
	return taken
}

// failStuck gives records whose worker was lost back to the retry schedule.
func (w *Worker) failStuck(app core.App) error {
	stuck, err := Stuck(app, w.Clock())
	if err != nil {
		return err
	}
	for _, c := range stuck {
		if _, own := w.own.Load(c.ID); own {
			continue
		}
		lost := &Error{Code: CodeTimeout, Message: "Delivery was interrupted", Ambiguous: true}
		_, err := w.record(app, c, delivery{err: lost, startedAt: collections.ParseInstant(c.ClaimedAt)})
		if err != nil && !errors.Is(err, ErrLost) { // a slow worker that was not lost after all has recorded it
			return err
		}
	}
	return nil
}
