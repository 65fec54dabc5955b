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
	abreast = 8
	// healthyWindow is how long a receiver may fail before it gets only one probe at a time, at most one each probeInterval.
	patientFor = time.Minute
	askEvery   = time.Second
	// yieldInterval is the least time between two batches to one receiver while readings wait to be stored. A batch is not smaller then, so that its
	// results share a commit.
	yieldEvery = 2 * time.Second
	// requeueBatch bounds how many deliveries one transaction requeues.
	againAtOnce = 500
	// idleWait is how long a worker sleeps when only a wake-up can bring work.
	never = time.Hour
)

// endpointWorker sends the deliveries of one endpoint. Its requests complete in any order, but never two of one queue at once.
type lane struct {
	engine *Engine
	id     string
	async.Signal

	lock  sync.Mutex
	under map[string]string // queues of deliveries in flight, by delivery id
	group sync.WaitGroup
	asked time.Time // when the last requests began
}

func (e *Engine) newLane(id string) *lane {
	return &lane{engine: e, id: id, Signal: async.NewSignal(), under: map[string]string{}}
}

// run sends due deliveries until the webhook is disabled or ctx ends. It then waits for the requests in flight, until requestCtx ends.
func (l *lane) run(ctx, requestCtx context.Context, app core.App) {
	defer l.group.Wait()
	for {
		wait, inUse, err := l.fill(ctx, requestCtx, app)
		if err != nil && ctx.Err() == nil {
			l.engine.Log.Error("webhook worker failed; it retries", slog.String("webhook", l.id), slog.Any("error", err))
			wait = sweep
		}
		if !inUse && err == nil {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-l.Signal:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// startDue starts due deliveries up to the free capacity, and returns how long to wait for the next without a wake-up.
func (l *lane) fill(ctx, requestCtx context.Context, app core.App) (wait time.Duration, inUse bool, err error) {
	now := l.engine.Clock()
	row, err := collections.FindWebhookState(app, l.id)
	if collections.IsNotFound(err) || err == nil && !row.Active {
		return 0, false, nil
	}
	if err == nil && row.ResendSince != "" {
		err = l.sendAgain(ctx, app, row.ResendSince, row.ResendAsNew)
	}
	if err != nil {
		return 0, true, err
	}
	if paused := collections.ParseInstant(row.PausedUntil).Sub(now); paused > 0 {
		return paused, true, nil
	}
	under := l.underWay()
	failing := collections.ParseInstant(row.FailingSince)
	room, apart := l.room(!failing.IsZero() && now.Sub(failing) >= patientFor)
	if wait := apart - now.Sub(l.asked); wait > 0 {
		return wait, true, nil
	}
	if room -= len(under); room <= 0 {
		return never, true, nil
	}
	due, err := collections.WebhookDeliveriesDue(app, l.id, now, room+len(under))
	if err != nil {
		return 0, true, err
	}
	if started, err := l.start(requestCtx, app, due, under, room); err != nil || started > 0 {
		l.asked = now
		return never, true, err // the end of a request wakes the worker
	}
	next, err := collections.NextWebhookDelivery(app, l.id, now)
	if err != nil || next.IsZero() {
		return never, true, err
	}
	return max(next.Sub(now), time.Millisecond), true, nil
}

// capacity returns how many requests may be in flight, and the least time between two batches.
func (l *lane) room(down bool) (abreastNow int, apart time.Duration) {
	switch {
	case down:
		return 1, askEvery
	case l.engine.yields():
		return abreast, yieldEvery
	}
	return abreast, 0
}

func (l *lane) underWay() map[string]string {
	l.lock.Lock()
	defer l.lock.Unlock()
	under := make(map[string]string, len(l.under))
	for id, queue := range l.under {
		under[id] = queue
	}
	return under
}

// start begins up to room deliveries, skipping queues with a delivery in flight.
func (l *lane) start(requestCtx context.Context, app core.App, due []collections.WebhookDelivery, under map[string]string, room int) (started int, err error) {
	queues := map[string]bool{}
	for _, queue := range under {
		queues[queue] = true
	}
	for _, d := range due {
		if started == room {
			break
		}
		if queues[d.Queue] {
			continue
		}
		webhook, err := collections.FindWebhook(app, l.id)
		if err != nil {
			return started, err
		}
		queues[d.Queue] = true
		started++
		l.lock.Lock()
		l.under[d.ID] = d.Queue
		l.lock.Unlock()
		l.group.Go(func() {
			l.deliver(requestCtx, app, webhook, d)
			l.lock.Lock()
			defer l.lock.Unlock()
			delete(l.under, d.ID)
			l.Wake() // under the lock, so that no reader sees an empty set before the wake-up
		})
	}
	return started, nil
}

// deliver makes one attempt and stores its result. An attempt cut off by shutdown stores nothing and is repeated under the same id.
func (l *lane) deliver(ctx context.Context, app core.App, w *collections.Webhook, d collections.WebhookDelivery) {
	a := l.engine.send(ctx, app, w, d)
	if ctx.Err() != nil {
		return
	}
	if _, err := l.engine.endings.Commit(app, ending{d, a}); err != nil {
		l.engine.Log.Error("webhook delivery result not stored; the delivery is sent again", slog.String("webhook", l.id), slog.Any("error", err))
	}
}

// requeueMissed makes deliveries due again that the receiver has not accepted since a time, in small transactions, before anything else is sent.
func (l *lane) sendAgain(ctx context.Context, app core.App, since string, anew bool) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		again := 0
		err := app.RunInTransaction(func(tx core.App) (err error) {
			now := l.engine.Clock()
			if again, err = collections.RequeueFailedWebhookDeliveries(tx, l.id, since, anew, len(l.engine.Schedule), now, againAtOnce); err != nil || again == againAtOnce {
				return err
			}
			if err := collections.ExpediteWebhookDeliveries(tx, l.id, since, now); err != nil {
				return err
			}
			return collections.EndWebhookResend(tx, l.id, since)
		})
		if err != nil || again < againAtOnce {
			return err
		}
	}
}
