package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/changefeed"
)

const (
	// changeBatch bounds how many changes one transaction covers, so that the writer of readings never waits long for it.
	changesAtOnce = 200
	// While readings wait to be stored, fan-out rests restFactor times as long as its last batch took, up to maxRest.
	restFor     = 100
	longestRest = 5 * time.Second
	// A position without matching changes is stored after this many changes, or after this long.
	noteEvery = 5000
	noteAfter = time.Hour
)

// subscriber is an active webhook and its position in the change feed.
type follower struct {
	id       string
	stored   int64  // position in the database
	at       int64  // position reached in memory
	events   string // as stored, JSON
	interest map[string]bool
	notedAt  time.Time
	lost     bool // an administrator changed it in the meantime; the next round reloads it
}

// fanOut queues deliveries for all committed changes and returns the ids of the webhooks that may have new ones. The deliveries of a webhook and its
// new position are stored in one transaction, so a crash neither skips nor repeats an event.
func (e *Engine) fanOut(ctx context.Context, app core.App) (found map[string]bool, err error) {
	found = map[string]bool{}
	followers, err := e.followers(app)
	if err != nil || len(followers) == 0 {
		return found, err
	}
	for busy := true; busy; {
		busy = false
		for position, group := range together(followers) {
			began := e.Clock()
			batch, err := changefeed.After(app, position, nil, changesAtOnce)
			if err != nil {
				return found, fmt.Errorf("read changes: %w", err)
			}
			if len(batch) == 0 {
				continue
			}
			busy = busy || len(batch) == changesAtOnce
			if err := e.spread(app, group, batch, found); err != nil {
				return found, err
			}
			if e.yields() && !async.Pause(ctx, min(restFor*e.Clock().Sub(began), longestRest)) {
				return found, ctx.Err()
			}
		}
	}
	return found, nil
}

// activeSubscribers loads the active webhooks.
func (e *Engine) followers(app core.App) (found []*follower, err error) {
	rows, err := collections.ActiveWebhooks(app)
	if err != nil {
		return nil, err
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	known := map[string]bool{}
	for _, row := range rows {
		f := &follower{id: row.ID, stored: row.Position, at: max(row.Position, e.ahead[row.ID].seq), notedAt: e.ahead[row.ID].notedAt, events: row.Events, interest: map[string]bool{}}
		var events []string
		if err := json.Unmarshal([]byte(row.Events), &events); err != nil {
			return nil, fmt.Errorf("events of webhook %s: %w", row.ID, err)
		}
		for _, event := range events {
			f.interest[event] = true
		}
		known[row.ID] = true
		found = append(found, f)
	}
	// A disabled webhook resumes from its stored position, with the events it subscribes to at that time.
	maps.DeleteFunc(e.ahead, func(id string, _ place) bool { return !known[id] })
	return found, nil
}

// groupByPosition groups subscribers at the same position, so that their changes are read once.
func together(followers []*follower) map[int64][]*follower {
	groups := map[int64][]*follower{}
	for _, f := range followers {
		if !f.lost {
			groups[f.at] = append(groups[f.at], f)
		}
	}
	return groups
}

// advanceGroup moves subscribers at the same position past a batch of changes.
func (e *Engine) spread(app core.App, group []*follower, batch []changefeed.Change, found map[string]bool) error {
	last, now := batch[len(batch)-1].Seq, e.Clock()
	var moving []*follower
	for _, f := range group {
		f.at = last
		if last-f.stored >= noteEvery || now.Sub(f.notedAt) >= noteAfter || slices.ContainsFunc(batch, func(c changefeed.Change) bool { return f.interest[c.Event] }) {
			moving = append(moving, f)
		}
	}
	if len(moving) > 0 {
		err := app.RunInTransaction(func(tx core.App) error {
			var errs []error
			tx = collections.WithStatementCache(tx)
			for _, f := range moving {
				errs = append(errs, e.move(tx, f, batch, last, now))
			}
			return errors.Join(errs...)
		})
		if err != nil {
			return fmt.Errorf("queue for webhooks: %w", err)
		}
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	for _, f := range moving {
		f.stored, f.notedAt, found[f.id] = last, now, true
	}
	for _, f := range group {
		if f.lost {
			e.Wake()
			continue
		}
		e.ahead[f.id] = place{last, f.notedAt}
	}
	return nil
}

// advance queues a subscriber's deliveries and stores its position. It does nothing if an administrator has changed the webhook in the meantime.
func (e *Engine) move(tx core.App, f *follower, batch []changefeed.Change, last int64, now time.Time) error {
	moved, err := collections.AdvanceWebhook(tx, f.id, f.events, f.stored, last)
	if f.lost = !moved; err != nil || !moved {
		return err
	}
	for _, c := range batch {
		if !f.interest[c.Event] {
			continue
		}
		d := collections.WebhookDelivery{
			Webhook: f.id, Seq: c.Seq, Event: c.Event, Record: c.Record, Patient: c.Patient, Queue: queueOf(c), Occurred: collections.Instant(c.At),
		}
		if err := collections.QueueWebhookDelivery(tx, d, now); err != nil {
			return err
		}
	}
	return nil
}

// queueName returns the queue in which deliveries are sent in order: the patient, or the resource if it belongs to no patient.
func queueOf(c changefeed.Change) string {
	if c.Patient != "" {
		return c.Patient
	}
	return c.Type + " " + c.Record
}
