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
	// look is how often the worker looks without being told to: what nobody wakes it for is told a second later. sweep is how often it tidies up.
	look  = time.Second
	sweep = 30 * time.Second
	// gathering is how long changes are gathered while readings wait, so that looking at them costs less.
	gathering = time.Second
	// stopPatience bounds the wait for receivers' answers when the worker stops.
	stopPatience = 5 * time.Second
	// orphansAtOnce bounds what one transaction removes of what was for webhooks that are no more.
	orphansAtOnce = 500
)

// Run tells receivers what is committed until ctx ends. Each has a lane of its own.
func (e *Engine) Run(ctx context.Context, app core.App) {
	patience, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	context.AfterFunc(ctx, func() { time.AfterFunc(stopPatience, giveUp) })
	var lanes sync.WaitGroup
	defer lanes.Wait()
	glance, tidy := time.NewTicker(look), time.NewTicker(sweep)
	defer glance.Stop()
	defer tidy.Stop()
	for e.Wake(); ; {
		select {
		case <-ctx.Done():
			return
		case <-e.Signal:
		case <-glance.C:
		case <-tidy.C:
			if err := removeOrphans(ctx, app); err != nil && ctx.Err() == nil {
				e.Log.Error("deliveries of removed webhooks not removed", slog.Any("error", err))
			}
		}
		if e.yields() && !async.Pause(ctx, gathering) {
			return
		}
		found, err := e.fanOut(ctx, app)
		if err == nil {
			err = e.open(ctx, patience, app, &lanes, found)
		}
		if err != nil && ctx.Err() == nil {
			e.Log.Error("webhooks not told", slog.Any("error", err)) // the sweep tries again
		}
	}
}

// yields: somebody waits for a reading to be stored, which goes first.
func (e *Engine) yields() bool { return e.ReadingsWait != nil && e.ReadingsWait() }

// open gives every webhook in use a lane, and wakes those for which something was found.
func (e *Engine) open(ctx, patience context.Context, app core.App, running *sync.WaitGroup, found map[string]bool) error {
	rows, err := collections.ActiveWebhooks(app)
	if err != nil {
		return err
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	for _, row := range rows {
		l, open := e.lanes[row.ID]
		if open {
			if found[row.ID] {
				l.Wake()
			}
			continue
		}
		l = e.newLane(row.ID)
		e.lanes[row.ID] = l
		running.Go(func() {
			l.run(ctx, patience, app)
			e.lock.Lock()
			delete(e.lanes, l.id)
			e.lock.Unlock()
			if ctx.Err() == nil {
				e.Wake() // it may have been put to use again while its last requests ended
			}
		})
	}
	return nil
}

// Changed tells the worker that an administrator has changed a webhook.
func (e *Engine) Changed(id string) {
	e.lock.Lock()
	l := e.lanes[id]
	e.lock.Unlock()
	if l != nil {
		l.Wake()
	}
	e.Wake()
}

// Round does all that is to be done at this time by the clock, and returns when nothing is under way: what Run does, once.
func (e *Engine) Round(ctx context.Context, app core.App) error {
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
		group.Go(func() { errs[i] = e.newLane(row.ID).empty(ctx, app) })
	}
	group.Wait()
	return errors.Join(append(errs, removeOrphans(ctx, app))...)
}

// empty sends what is due until nothing is.
func (l *lane) empty(ctx context.Context, app core.App) error {
	defer l.group.Wait()
	for {
		if _, _, err := l.fill(ctx, ctx, app); err != nil {
			return err
		}
		if len(l.underWay()) == 0 && len(l.Signal) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.Signal:
		}
	}
}

// removeOrphans removes what was for webhooks that are no more, in small transactions.
func removeOrphans(ctx context.Context, app core.App) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		removed, err := collections.RemoveWebhookOrphans(app, orphansAtOnce)
		if err != nil || removed < orphansAtOnce {
			return err
		}
	}
}
