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
	// abreast bounds the requests to one receiver at once. Each receiver has its own, so that one that hangs holds up no other.
	abreast = 8
	// patientFor is how long a receiver may take nothing before it is only asked now and then: one request at a time, a second apart.
	patientFor = time.Minute
	askEvery   = time.Second
	// yieldEvery lies between two times that one receiver is sent something while readings wait to be stored: as many at once as otherwise, so
	// that their ends share a commit.
	yieldEvery = 2 * time.Second
	// againAtOnce bounds what one transaction makes due again.
	againAtOnce = 500
	// never is how long a lane waits that only a wake concerns.
	never = time.Hour
)

// lane is what is under way to one receiver. Its requests end in any order; no two of them are of one queue.
type lane struct {
	engine *Engine
	id     string
	async.Signal

	lock  sync.Mutex
	under map[string]string // the queues of deliveries under way, by id
	group sync.WaitGroup
	asked time.Time // when the last request began
}

func (e *Engine) newLane(id string) *lane {
	return &lane{engine: e, id: id, Signal: async.NewSignal(), under: map[string]string{}}
}

// run sends what is due until the webhook is out of use or ctx ends. Requests under way end by themselves, or with patience.
func (l *lane) run(ctx, patience context.Context, app core.App) {
	defer l.group.Wait()
	for {
		wait, inUse, err := l.fill(ctx, patience, app)
		if err != nil && ctx.Err() == nil {
			l.engine.Log.Error("webhook not served", slog.String("webhook", l.id), slog.Any("error", err))
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

// fill starts what is due and has room, and says how long to wait unless woken before.
func (l *lane) fill(ctx, patience context.Context, app core.App) (wait time.Duration, inUse bool, err error) {
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
	if started, err := l.start(patience, app, due, under, room); err != nil || started > 0 {
		l.asked = now
		return never, true, err // the end of one wakes us
	}
	next, err := collections.NextWebhookDelivery(app, l.id, now)
	if err != nil || next.IsZero() {
		return never, true, err
	}
	return max(next.Sub(now), time.Millisecond), true, nil
}

// room is how many requests may be under way at once, and the least time between two times that some are begun.
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

// start starts those that are not under way, nor another of their queue.
func (l *lane) start(patience context.Context, app core.App, due []collections.WebhookDelivery, under map[string]string, room int) (started int, err error) {
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
			l.deliver(patience, app, webhook, d)
			l.lock.Lock()
			defer l.lock.Unlock()
			delete(l.under, d.ID)
			l.Wake() // while nobody can see that nothing is under way, and take it for the end
		})
	}
	return started, nil
}

// deliver makes one attempt and stores how it ended. One that was cut off leaves no trace: it is made again, under the same id.
func (l *lane) deliver(ctx context.Context, app core.App, w *collections.Webhook, d collections.WebhookDelivery) {
	a := l.engine.send(ctx, app, w, d)
	if ctx.Err() != nil {
		return
	}
	if _, err := l.engine.endings.Commit(app, ending{d, a}); err != nil {
		l.engine.Log.Error("end of a delivery not stored", slog.String("webhook", l.id), slog.Any("error", err))
	}
}

// sendAgain makes due what the receiver did not take since a time, in small transactions, before anything else is sent to it.
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
