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
	// changesAtOnce bounds what one transaction looks at, so that readings never wait long for it.
	changesAtOnce = 200
	// While somebody waits for a reading to be stored, looking at changes rests so many times as long as it took, but never longer than that.
	restFor     = 100
	longestRest = 5 * time.Second
	// A position is stored though nothing was of interest after so many changes, or so long.
	noteEvery = 5000
	noteAfter = time.Hour
)

// follower is a webhook in use and how far it has come.
type follower struct {
	id       string
	stored   int64 // its position in the database
	at       int64
	events   string // as they are stored
	interest map[string]bool
	notedAt  time.Time
	lost     bool // it was changed meanwhile: the next round takes it up again
}

// fanOut writes down who is to be told of what was committed, until all is looked at, and returns whose lanes have something new. What one
// webhook is told of, and how far it has come, is one transaction: killed in the middle, nothing is left out and nothing comes twice.
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

// followers are the webhooks in use.
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
	// Whoever is out of use goes on where it stopped with the events it asks for by then.
	maps.DeleteFunc(e.ahead, func(id string, _ place) bool { return !known[id] })
	return found, nil
}

// together groups those that have come equally far, so that changes are read once for all of them.
func together(followers []*follower) map[int64][]*follower {
	groups := map[int64][]*follower{}
	for _, f := range followers {
		if !f.lost {
			groups[f.at] = append(groups[f.at], f)
		}
	}
	return groups
}

// spread moves followers that have come equally far over a batch of changes.
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

// move stores what a follower is to be told of, and how far it has come; nothing when somebody has changed it meanwhile.
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

// queueOf names what is told in order: the events of a patient, or of what belongs to none.
func queueOf(c changefeed.Change) string {
	if c.Patient != "" {
		return c.Patient
	}
	return c.Type + " " + c.Record
}
