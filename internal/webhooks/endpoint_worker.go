package webhooks

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
)

const (
	// maxInFlight bounds the concurrent requests to one receiver. Endpoints are isolated from each other, so a receiver that hangs delays no other.
	maxInFlight = 8
	// healthyWindow is how long a receiver may fail before it gets only one probe at a time, at most one each probeInterval.
	healthyWindow = time.Minute
	probeInterval = time.Second
	// yieldInterval is the least time between two batches to one receiver while readings wait to be stored. A batch is not smaller then, so that its
	// results share a commit.
	yieldInterval = 2 * time.Second
	// requeueBatch bounds how many deliveries one transaction requeues.
	requeueBatch = 500
	// idleWait is how long a worker sleeps when only a wake-up can bring work.
	idleWait = time.Hour
)

// endpointWorker sends the deliveries of one endpoint. Its requests complete in any order, but never two of one queue at once.
type endpointWorker struct {
	engine *Engine
	id     string
	async.Signal

	lock          sync.Mutex
	inFlight      map[string]string // queues of deliveries in flight, by delivery id
	group         sync.WaitGroup
	lastStartedAt time.Time // when the last requests began
}

func (e *Engine) newEndpointWorker(id string) *endpointWorker {
	return &endpointWorker{engine: e, id: id, Signal: async.NewSignal(), inFlight: map[string]string{}}
}

// run sends due deliveries until the webhook is disabled or ctx ends. It then waits for the requests in flight, until requestCtx ends.
func (w *endpointWorker) run(ctx, requestCtx context.Context, app core.App) {
	defer w.group.Wait()
	for {
		wait, inUse, err := w.startDue(ctx, requestCtx, app)
		if err != nil && ctx.Err() == nil {
			w.engine.Log.Error("webhook worker could not start due deliveries; it retries", slog.String("webhook", w.id), slog.Any("error", err))
			wait = sweepInterval
		}
		if !inUse && err == nil {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-w.Signal:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// startDue starts due deliveries up to the free capacity, and returns how long to wait for the next without a wake-up.
func (w *endpointWorker) startDue(ctx, requestCtx context.Context, app core.App) (wait time.Duration, inUse bool, err error) {
	now := w.engine.Clock()
	row, err := collections.FindWebhookState(app, w.id)
	if collections.IsNotFound(err) || err == nil && !row.Active {
		return 0, false, nil
	}
	if err == nil && row.ResendSince != "" {
		err = w.requeueMissed(ctx, app, row.ResendSince, row.ResendAsNew)
	}
	if err != nil {
		return 0, true, err
	}
	if paused := collections.ParseInstant(row.PausedUntil).Sub(now); paused > 0 {
		return paused, true, nil
	}
	inFlight := w.queuesInFlight()
	failing := collections.ParseInstant(row.FailingSince)
	free, minGap := w.capacity(!failing.IsZero() && now.Sub(failing) >= healthyWindow)
	if wait := minGap - now.Sub(w.lastStartedAt); wait > 0 {
		return wait, true, nil
	}
	if free -= len(inFlight); free <= 0 {
		return idleWait, true, nil
	}
	due, err := collections.WebhookDeliveriesDue(app, w.id, now, free+len(inFlight))
	if err != nil {
		return 0, true, err
	}
	if started, err := w.start(requestCtx, app, due, inFlight, free); err != nil || started > 0 {
		w.lastStartedAt = now
		return idleWait, true, err // the end of a request wakes the worker
	}
	next, err := collections.NextWebhookDelivery(app, w.id, now)
	if err != nil || next.IsZero() {
		return idleWait, true, err
	}
	return max(next.Sub(now), time.Millisecond), true, nil
}

// capacity returns how many requests may be in flight, and the least time between two batches.
func (w *endpointWorker) capacity(down bool) (maxRequests int, minGap time.Duration) {
	switch {
	case down:
		return 1, probeInterval
	case w.engine.shouldYield():
		return maxInFlight, yieldInterval
	}
	return maxInFlight, 0
}

func (w *endpointWorker) queuesInFlight() map[string]string {
	w.lock.Lock()
	defer w.lock.Unlock()
	under := make(map[string]string, len(w.inFlight))
	for id, queue := range w.inFlight {
		under[id] = queue
	}
	return under
}

// start begins up to free deliveries, skipping queues with a delivery in flight.
func (w *endpointWorker) start(requestCtx context.Context, app core.App, due []collections.WebhookDelivery, inFlight map[string]string, free int) (started int, err error) {
	queues := map[string]bool{}
	for _, queue := range inFlight {
		queues[queue] = true
	}
	for _, d := range due {
		if started == free {
			break
		}
		if queues[d.Queue] {
			continue
		}
		webhook, err := collections.FindWebhook(app, w.id)
		if err != nil {
			return started, err
		}
		queues[d.Queue] = true
		started++
		w.lock.Lock()
		w.inFlight[d.ID] = d.Queue
		w.lock.Unlock()
		w.group.Go(func() {
			w.deliver(requestCtx, app, webhook, d)
			w.lock.Lock()
			defer w.lock.Unlock()
			delete(w.inFlight, d.ID)
			w.Wake() // under the lock, so that no reader sees an empty set before the wake-up
		})
	}
	return started, nil
}

// deliver makes one attempt and stores its result. An attempt cut off by shutdown stores nothing and is repeated under the same id.
func (w *endpointWorker) deliver(ctx context.Context, app core.App, webhook *collections.Webhook, d collections.WebhookDelivery) {
	a := w.engine.send(ctx, app, webhook, d)
	if ctx.Err() != nil {
		return
	}
	if _, err := w.engine.results.Commit(app, finishedAttempt{d, a}); err != nil {
		w.engine.Log.Error("webhook worker could not store a result; it sends the delivery again", slog.String("webhook", w.id), slog.Any("error", err))
	}
}

// requeueMissed makes deliveries due again that the receiver has not accepted since a time, in small transactions, before anything else is sent.
func (w *endpointWorker) requeueMissed(ctx context.Context, app core.App, since string, asNew bool) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		requeued := 0
		err := app.RunInTransaction(func(tx core.App) (err error) {
			now := w.engine.Clock()
			if requeued, err = collections.RequeueFailedWebhookDeliveries(tx, w.id, since, asNew, len(w.engine.Schedule), now, requeueBatch); err != nil || requeued == requeueBatch {
				return err
			}
			if err := collections.ExpediteWebhookDeliveries(tx, w.id, since, now); err != nil {
				return err
			}
			return collections.EndWebhookResend(tx, w.id, since)
		})
		if err != nil || requeued < requeueBatch {
			return err
		}
	}
}
