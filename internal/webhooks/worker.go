package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
)

const (
	// pollInterval is how often the engine looks for changes without a wake-up. sweepInterval is how often it removes deliveries of deleted
	// webhooks.
	pollInterval  = time.Second
	sweepInterval = 30 * time.Second
	// gatherDelay is how long changes accumulate while readings wait, so that reading the feed costs less.
	gatherDelay = time.Second
	// stopTimeout bounds the wait for receivers' answers when the engine stops.
	stopTimeout = 5 * time.Second
	// orphanBatch bounds how many deliveries of deleted webhooks one transaction removes.
	orphanBatch = 500
)

// Run delivers committed changes until ctx ends, with one worker per endpoint.
func (e *Engine) Run(ctx context.Context, app core.App) {
	requestCtx, cancelRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelRequests()
	context.AfterFunc(ctx, func() { time.AfterFunc(stopTimeout, cancelRequests) })
	var workers sync.WaitGroup
	defer workers.Wait()
	poll, tidy := time.NewTicker(pollInterval), time.NewTicker(sweepInterval)
	defer poll.Stop()
	defer tidy.Stop()
	for e.Wake(); ; {
		select {
		case <-ctx.Done():
			return
		case <-e.Signal:
		case <-poll.C:
		case <-tidy.C:
			if err := removeOrphans(ctx, app); err != nil && ctx.Err() == nil {
				e.Log.Error("webhook engine could not remove deliveries of deleted webhooks; the next sweep retries", slog.Any("error", err))
			}
		}
		if e.shouldYield() && !async.Sleep(ctx, gatherDelay) {
			return
		}
		found, err := e.fanOut(ctx, app)
		if err == nil {
			err = e.startWorkers(ctx, requestCtx, app, &workers, found)
		}
		if err != nil && ctx.Err() == nil {
			e.Log.Error("webhook engine could not queue deliveries; the next poll retries", slog.Any("error", err))
		}
	}
}

// shouldYield reports whether readings wait to be stored.
func (e *Engine) shouldYield() bool { return e.ReadingsPending != nil && e.ReadingsPending() }

// startWorkers starts a worker for every active webhook that has none, and wakes the workers of those with new deliveries.
func (e *Engine) startWorkers(ctx, requestCtx context.Context, app core.App, running *sync.WaitGroup, found map[string]bool) error {
	rows, err := collections.ActiveWebhooks(app)
	if err != nil {
		return err
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	for _, row := range rows {
		w, open := e.workers[row.ID]
		if open {
			if found[row.ID] {
				w.Wake()
			}
			continue
		}
		w = e.newEndpointWorker(row.ID)
		e.workers[row.ID] = w
		running.Go(func() {
			w.run(ctx, requestCtx, app)
			e.lock.Lock()
			delete(e.workers, w.id)
			e.lock.Unlock()
			if ctx.Err() == nil {
				e.Wake() // the webhook may have been enabled again while its last requests ended
			}
		})
	}
	return nil
}

// EndpointChanged wakes the workers after a webhook was changed.
func (e *Engine) EndpointChanged(id string) {
	e.lock.Lock()
	w := e.workers[id]
	e.lock.Unlock()
	if w != nil {
		w.Wake()
	}
	e.Wake()
}

// RunOnce queues and sends everything that is due now and waits for it.
func (e *Engine) RunOnce(ctx context.Context, app core.App) error {
	if _, err := e.fanOut(ctx, app); err != nil {
		return err
	}
	rows, err := collections.ActiveWebhooks(app)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	errs := make([]error, len(rows))
	for i, row := range rows {
		group.Go(func() { errs[i] = e.newEndpointWorker(row.ID).drain(ctx, app) })
	}
	group.Wait()
	return errors.Join(append(errs, removeOrphans(ctx, app))...)
}

// drain sends due deliveries until none is left.
func (w *endpointWorker) drain(ctx context.Context, app core.App) error {
	defer w.group.Wait()
	for {
		if _, _, err := w.startDue(ctx, ctx, app); err != nil {
			return err
		}
		if len(w.queuesInFlight()) == 0 && len(w.Signal) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.Signal:
		}
	}
}

// removeOrphans removes deliveries of deleted webhooks in small transactions.
func removeOrphans(ctx context.Context, app core.App) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		removed, err := collections.RemoveWebhookOrphans(app, orphanBatch)
		if err != nil || removed < orphanBatch {
			return err
		}
	}
}
