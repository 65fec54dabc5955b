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
	changeBatch = 200
	// While readings wait to be stored, fan-out rests restFactor times as long as its last batch took, up to maxRest.
	restFactor = 100
	maxRest    = 5 * time.Second
	// A position without matching changes is stored after this many changes, or after this long.
	storePositionEvery = 5000
	storePositionAfter = time.Hour
)

// subscriber is an active webhook and its position in the change feed.
type subscriber struct {
	id        string
	storedSeq int64  // position in the database
	readSeq   int64  // position reached in memory
	events    string // as stored, JSON
	wanted    map[string]bool
	storedAt  time.Time
	isStale   bool // an administrator changed it in the meantime; the next round reloads it
}

// fanOut queues deliveries for all committed changes and returns the ids of the webhooks that may have new ones. The deliveries of a webhook and its
// new position are stored in one transaction, so a crash neither skips nor repeats an event.
func (e *Engine) fanOut(ctx context.Context, app core.App) (found map[string]bool, err error) {
	found = map[string]bool{}
	followers, err := e.activeSubscribers(app)
	if err != nil || len(followers) == 0 {
		return found, err
	}
	for busy := true; busy; {
		busy = false
		for position, group := range groupByPosition(followers) {
			began := e.Clock()
			batch, err := changefeed.After(app, position, nil, changeBatch)
			if err != nil {
				return found, fmt.Errorf("read changes: %w", err)
			}
			if len(batch) == 0 {
				continue
			}
			busy = busy || len(batch) == changeBatch
			if err := e.advanceGroup(app, group, batch, found); err != nil {
				return found, err
			}
			if e.shouldYield() && !async.Sleep(ctx, min(restFactor*e.Clock().Sub(began), maxRest)) {
				return found, ctx.Err()
			}
		}
	}
	return found, nil
}

// activeSubscribers loads the active webhooks.
func (e *Engine) activeSubscribers(app core.App) (found []*subscriber, err error) {
	rows, err := collections.ActiveWebhooks(app)
	if err != nil {
		return nil, err
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	known := map[string]bool{}
	for _, row := range rows {
		f := &subscriber{id: row.ID, storedSeq: row.Position, readSeq: max(row.Position, e.readAhead[row.ID].seq), storedAt: e.readAhead[row.ID].storedAt, events: row.Events, wanted: map[string]bool{}}
		var events []string
		if err := json.Unmarshal([]byte(row.Events), &events); err != nil {
			return nil, fmt.Errorf("events of webhook %s: %w", row.ID, err)
		}
		for _, event := range events {
			f.wanted[event] = true
		}
		known[row.ID] = true
		found = append(found, f)
	}
	// A disabled webhook resumes from its stored position, with the events it subscribes to at that time.
	maps.DeleteFunc(e.readAhead, func(id string, _ readPosition) bool { return !known[id] })
	return found, nil
}

// groupByPosition groups subscribers at the same position, so that their changes are read once.
func groupByPosition(followers []*subscriber) map[int64][]*subscriber {
	groups := map[int64][]*subscriber{}
	for _, f := range followers {
		if !f.isStale {
			groups[f.readSeq] = append(groups[f.readSeq], f)
		}
	}
	return groups
}

// advanceGroup moves subscribers at the same position past a batch of changes.
func (e *Engine) advanceGroup(app core.App, group []*subscriber, batch []changefeed.Change, found map[string]bool) error {
	last, now := batch[len(batch)-1].Seq, e.Clock()
	var moving []*subscriber
	for _, f := range group {
		f.readSeq = last
		if last-f.storedSeq >= storePositionEvery || now.Sub(f.storedAt) >= storePositionAfter || slices.ContainsFunc(batch, func(c changefeed.Change) bool { return f.wanted[c.Event] }) {
			moving = append(moving, f)
		}
	}
	if len(moving) > 0 {
		err := app.RunInTransaction(func(tx core.App) error {
			var errs []error
			tx = collections.WithStatementCache(tx)
			for _, f := range moving {
				errs = append(errs, e.advance(tx, f, batch, last, now))
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
		f.storedSeq, f.storedAt, found[f.id] = last, now, true
	}
	for _, f := range group {
		if f.isStale {
			e.Wake()
			continue
		}
		e.readAhead[f.id] = readPosition{last, f.storedAt}
	}
	return nil
}

// advance queues a subscriber's deliveries and stores its position. It does nothing if an administrator has changed the webhook in the meantime.
func (e *Engine) advance(tx core.App, f *subscriber, batch []changefeed.Change, last int64, now time.Time) error {
	moved, err := collections.AdvanceWebhook(tx, f.id, f.events, f.storedSeq, last)
	if f.isStale = !moved; err != nil || !moved {
		return err
	}
	for _, c := range batch {
		if !f.wanted[c.Event] {
			continue
		}
		d := collections.WebhookDelivery{
			Webhook: f.id, Seq: c.Seq, Event: c.Event, Record: c.Record, Patient: c.Patient, Queue: queueName(c), Occurred: collections.FormatInstant(c.At),
		}
		if err := collections.QueueWebhookDelivery(tx, d, now); err != nil {
			return err
		}
	}
	return nil
}

// queueName returns the queue in which deliveries are sent in order: the patient, or the resource if it belongs to no patient.
func queueName(c changefeed.Change) string {
	if c.Patient != "" {
		return c.Patient
	}
	return c.Type + " " + c.Record
}
