package billing

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/pace"
	"github.com/vigilhealth/vigil/internal/worklist"
)

// worklists are the lists of everybody that are read instead of worked out. What stands on one is what the function of its question says, which is the
// only one that plans; the engine's runs, reviews and recounts use none of it. Source: docs/decisions/billing.md, "Worklists".
type worklists struct {
	feed     *worklist.Feed
	tariff   tariffs
	unbilled *worklist.Answers[[]earned]
	byEnd    *worklist.List[earned]
	near     *worklist.Answers[[]nearness]
	byLack   *worklist.List[nearness]
	byWorth  *worklist.List[nearness]
	wanted   chan struct{} // filled when much has changed
}

func (e *Engine) newWorklists() *worklists {
	l := &worklists{
		feed:    &worklist.Feed{},
		wanted:  make(chan struct{}, 1),
		byEnd:   worklist.NewList(func(x earned) worklist.Patient { return x.patient }, byEnd),
		byLack:  worklist.NewList(func(x nearness) worklist.Patient { return x.patient }, byLack),
		byWorth: worklist.NewList(func(x nearness) worklist.Patient { return x.patient }, byWorth),
	}
	l.tariff.read = e.readTariff
	l.feed.Tell(&l.tariff)
	l.unbilled = worklist.New[[]earned](l.feed, l.byEnd)
	l.near = worklist.New[[]nearness](l.feed, l.byLack, l.byWorth)
	return l
}

func byEnd(a, b earned) int {
	if a.what != b.what {
		if order := cmp.Compare(a.what.Value().period.End, b.what.Value().period.End); order != 0 {
			return order
		}
	}
	return worklist.Before(a.patient, b.patient)
}

// tariffs remembers the tariff until anything of it changes. It is asked once the changes were read.
type tariffs struct {
	lock       sync.Mutex
	known      *tariff
	generation int
	read       func(core.App) (tariff, error)
}

// Touch implements [worklist.Keeper]: no patient changes a tariff.
func (*tariffs) Touch([]worklist.Patient) {}

// TouchAll implements [worklist.Keeper].
func (t *tariffs) TouchAll() {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.known = nil
	t.generation++
}

// of is the tariff. What was read before it changed is not remembered.
func (t *tariffs) of(app core.App) (tariff, error) {
	if app.IsTransactional() {
		return t.read(app)
	}
	t.lock.Lock()
	known, generation := t.known, t.generation
	t.lock.Unlock()
	if known != nil {
		return *known, nil
	}
	found, err := t.read(app)
	t.lock.Lock()
	defer t.lock.Unlock()
	if err == nil && generation == t.generation {
		t.known = &found
	}
	return found, err
}

// ready is a question whose answers are brought up to date and compared, whatever they are.
type ready struct {
	name    string
	step    func(core.App) (more bool, err error)
	recount func(context.Context, core.App, *pace.Pace, func(patientID string)) (seen int, err error)
}

func readyOf[T comparable](name string, answers *worklist.Answers[[]T], q worklist.Question[[]T]) ready {
	return ready{
		name: name,
		step: func(app core.App) (bool, error) { return answers.Step(app, q) },
		recount: func(ctx context.Context, app core.App, p *pace.Pace, differs func(string)) (int, error) {
			return answers.Recount(ctx, app, q, slices.Equal[[]T], p, differs)
		},
	}
}

// worklistsOn are the lists of a moment, first the one that people look at after a run.
func (e *Engine) worklistsOn(now time.Time) []ready {
	return []ready{readyOf("unbilled", e.lists.unbilled, e.unbilledNow(now)), readyOf("near-billable", e.lists.near, e.nearNow(now))}
}

const (
	// refreshEvery is how often worklists are brought up to date without anybody asking, so that who asks waits for few patients.
	refreshEvery = 30 * time.Second
	// refreshShare bounds what that takes where readings of everybody come all the time: one part in so many.
	refreshShare = 50
)

// RefreshWorklists brings the worklists up to date now and then, and after each run, until ctx ends: somebody who asks finds most of it done.
func (e *Engine) RefreshWorklists(ctx context.Context, app core.App, clock func() time.Time, log *slog.Logger) {
	wait := time.NewTimer(refreshEvery)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		case <-e.lists.wanted:
		}
		began := clock()
		if err := e.refresh(ctx, app, began); err != nil && ctx.Err() == nil {
			log.Error("worklists not brought up to date", slog.Any("error", err)) // who asks does it
		}
		wait.Reset(max(refreshEvery, refreshShare*clock().Sub(began)))
	}
}

// changedMuch has the worklists brought up to date soon.
func (l *worklists) changedMuch() {
	select {
	case l.wanted <- struct{}{}:
	default: // already wanted
	}
}

func (e *Engine) refresh(ctx context.Context, app core.App, now time.Time) error {
	p := pace.While(e.ReadingsWait)
	for _, list := range e.worklistsOn(now) {
		for more := true; more; {
			if err := p.Rest(ctx); err != nil {
				return err
			}
			var err error
			if more, err = list.step(app); err != nil {
				return err
			}
		}
	}
	return nil
}

// RecountWorklists plans everybody anew, compares with the worklists, and puts right what differs. Any difference is a fault somewhere: differs is told
// which list was wrong about which patient. It returns how many patients were planned.
func (e *Engine) RecountWorklists(ctx context.Context, app core.App, now time.Time, differs func(list, patientID string)) (patients int, err error) {
	p := pace.While(e.ReadingsWait)
	for _, list := range e.worklistsOn(now) {
		seen, failed := list.recount(ctx, app, p, func(id string) { differs(list.name, id) })
		patients, err = max(patients, seen), errors.Join(err, failed)
	}
	return patients, err
}
