package worklist

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"unique"

	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/sync/errgroup"

	"github.com/vigilhealth/vigil/internal/pace"
)

const (
	// Chunk is how many patients are asked about together.
	Chunk = 400
	// readers are how many chunks are worked on at once, each over a connection of its own; the others are left to everybody else.
	readers = 2
)

// Question is asked of patients, some at a time. Its functions read committed facts, each as of the moment of its call.
type Question[V any] struct {
	// Name says in an error what was under way.
	Name string
	// Key is all that the answers depend on beside the database, such as a day.
	Key string
	// Whom are the next patients it is about, after one, by id; of those who are named alone, unless nil.
	Whom func(app core.App, named []string, after string, limit int) ([]string, error)
	// Answer works the answers out; who has none is not among them.
	Answer func(app core.App, ids []string) (map[string]V, error)
}

// Answers are those to one question. They hold for one key and one database; another one begins anew.
type Answers[V any] struct {
	feed  *Feed
	lists []follower

	working sync.Mutex // one asks at a time; it guards all but what is marked
	key     string
	folder  string
	after   string // up to whom everybody was asked about, until all were
	whole   bool
	pending []string // of those asked about already, who is to be asked about anew
	answers map[Patient]V

	marking sync.Mutex
	stale   map[Patient]bool
	all     bool
}

// follower is told whose answer is another one.
type follower interface {
	changed(id Patient)
	reset()
}

// New returns what keeps answers, and tells the followers of each that changes.
func New[V any](feed *Feed, followers ...follower) *Answers[V] {
	k := &Answers[V]{feed: feed, lists: followers, answers: map[Patient]V{}, stale: map[Patient]bool{}}
	feed.Tell(k)
	return k
}

// Touch implements [Keeper].
func (k *Answers[V]) Touch(ids []Patient) {
	k.marking.Lock()
	defer k.marking.Unlock()
	for _, id := range ids {
		k.stale[id] = true
	}
}

// TouchAll implements [Keeper].
func (k *Answers[V]) TouchAll() {
	k.marking.Lock()
	defer k.marking.Unlock()
	k.all = true
}

// Snapshot is what a question comes to at one moment.
type Snapshot[V any] struct {
	Of    map[Patient]V
	fresh bool // and forgotten afterwards
}

// Ask has everybody asked about whose answer is not known, and hands the answers over; they must not be changed, and are good until read returns. In
// a transaction nothing is remembered: it may be rolled back.
func (k *Answers[V]) Ask(app core.App, q Question[V], read func(Snapshot[V])) error {
	if app.IsTransactional() {
		answers, err := Fresh(app, q)
		if err == nil {
			read(Snapshot[V]{answers, true})
		}
		return err
	}
	k.working.Lock()
	defer k.working.Unlock()
	if err := k.bring(app, q); err != nil {
		return err
	}
	read(Snapshot[V]{k.answers, false})
	return nil
}

// bring works out what is not known.
func (k *Answers[V]) bring(app core.App, q Question[V]) error {
	if err := k.catchUp(app, q.Key); err != nil {
		return err
	}
	for {
		more, err := k.work(app, q, readers)
		if err != nil || !more {
			return err
		}
	}
}

// Step asks about some patients more, and reports whether there are others. Whoever waits for an answer is let in between two steps.
func (k *Answers[V]) Step(app core.App, q Question[V]) (more bool, err error) {
	k.working.Lock()
	defer k.working.Unlock()
	if err := k.catchUp(app, q.Key); err != nil {
		return false, err
	}
	return k.work(app, q, 1)
}

// catchUp learns whom to ask about anew.
func (k *Answers[V]) catchUp(app core.App, key string) error {
	if err := k.feed.catchUp(app); err != nil {
		return err
	}
	k.marking.Lock()
	defer k.marking.Unlock()
	if k.all || k.key != key || k.folder != app.DataDir() {
		k.all, k.key, k.folder, k.after, k.whole, k.pending = false, key, app.DataDir(), "", false, nil
		clear(k.stale)
		k.answers = map[Patient]V{}
		for _, list := range k.lists {
			list.reset()
		}
		return nil
	}
	if len(k.stale) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, id := range k.pending {
		known[id] = true
	}
	for id := range k.stale {
		if text := id.Value(); !known[text] && (k.whole || text <= k.after) { // the others have their turn
			k.pending = append(k.pending, text)
		}
	}
	clear(k.stale)
	slices.Sort(k.pending)
	return nil
}

// part is a chunk of patients under way.
type part[V any] struct {
	ids     []string
	answers map[string]V
}

// work asks about a few chunks at once, those first who are asked about anew. What fails leaves everything as it was.
func (k *Answers[V]) work(app core.App, q Question[V], chunks int) (more bool, err error) {
	var parts []*part[V]
	var workers errgroup.Group
	pending, after, whole := k.pending, k.after, k.whole
	for range chunks {
		p := &part[V]{}
		switch {
		case len(pending) > 0:
			p.ids, pending = pending[:min(Chunk, len(pending))], pending[min(Chunk, len(pending)):]
			workers.Go(func() error { return q.ask(app, p, true) })
		case !whole:
			p.ids, err = q.Whom(app, nil, after, Chunk)
			if whole = err != nil || len(p.ids) == 0; whole {
				continue
			}
			after = p.ids[len(p.ids)-1]
			workers.Go(func() error { return q.ask(app, p, false) })
		}
		parts = append(parts, p)
	}
	if failed := workers.Wait(); failed != nil || err != nil {
		return false, fmt.Errorf("%s: %w", q.Name, errors.Join(err, failed))
	}
	for _, p := range parts {
		k.store(p)
	}
	k.pending, k.after, k.whole = pending, after, whole
	return len(pending) > 0 || !whole, nil
}

func (k *Answers[V]) store(p *part[V]) {
	for _, id := range p.ids {
		patient := unique.Make(id)
		answer, ok := p.answers[id]
		_, had := k.answers[patient]
		switch {
		case ok:
			k.answers[patient] = answer
		case had:
			delete(k.answers, patient)
		default:
			continue
		}
		for _, list := range k.lists {
			list.changed(patient)
		}
	}
}

// ask works out the answers of a part; of patients who are named, those of them whom the question is about. A panic is an error like any other: in a
// goroutine of its own it would end the service.
func (q Question[V]) ask(app core.App, p *part[V], named bool) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panicked (%T): %s", v, debug.Stack()) // the text of v could quote a value
		}
	}()
	ids := p.ids
	if named {
		if ids, err = q.Whom(app, ids, "", len(ids)); err != nil || len(ids) == 0 {
			return err
		}
	}
	p.answers, err = q.Answer(app, ids)
	return err
}

// Fresh asks about everybody anew, and keeps nothing.
func Fresh[V any](app core.App, q Question[V]) (map[Patient]V, error) {
	k := &Answers[V]{answers: map[Patient]V{}}
	for {
		more, err := k.work(app, q, 1)
		if err != nil || !more {
			return k.answers, err
		}
	}
}

// Recount asks about everybody anew, compares, and puts right what differs: there is a fault somewhere, since nothing that is told had touched it.
// differs is told of each patient whose answer was wrong. It returns how many were asked about.
func (k *Answers[V]) Recount(ctx context.Context, app core.App, q Question[V], same func(a, b V) bool, rest *pace.Pace, differs func(patientID string)) (seen int, err error) {
	for after := ""; ; {
		if err := rest.Rest(ctx); err != nil {
			return seen, err
		}
		more, wrong, err := k.recount(app, q, same, &after)
		seen += more
		for _, id := range wrong {
			differs(id)
		}
		if err != nil || more == 0 {
			return seen, err
		}
	}
}

// recount compares the next chunk, and whoever has an answer beside it.
func (k *Answers[V]) recount(app core.App, q Question[V], same func(a, b V) bool, after *string) (seen int, wrong []string, err error) {
	k.working.Lock()
	defer k.working.Unlock()
	if err := k.bring(app, q); err != nil {
		return 0, nil, err
	}
	p := &part[V]{}
	if p.ids, err = q.Whom(app, nil, *after, Chunk); err != nil {
		return 0, nil, err
	}
	if seen = len(p.ids); seen > 0 {
		if err := q.ask(app, p, false); err != nil {
			return 0, nil, fmt.Errorf("%s: %w", q.Name, err)
		}
	}
	beside := k.beside(p.ids, *after)
	if seen > 0 {
		*after = p.ids[seen-1]
	}
	if err := k.catchUp(app, q.Key); err != nil || !k.whole { // everybody was touched meanwhile
		return seen, nil, err
	}
	p.ids = slices.DeleteFunc(append(p.ids, beside...), func(id string) bool {
		before, had := k.answers[unique.Make(id)]
		fresh, has := p.answers[id]
		_, touched := slices.BinarySearch(k.pending, id)
		return touched || had == has && (!has || same(before, fresh))
	})
	k.store(p)
	return seen, p.ids, nil
}

// beside are the patients with an answer from behind an id to the last of some (without end when there are none) who are not among them.
func (k *Answers[V]) beside(ids []string, from string) (others []string) {
	for patient := range k.answers {
		id := patient.Value()
		if id <= from || len(ids) > 0 && id > ids[len(ids)-1] {
			continue
		}
		if _, among := slices.BinarySearch(ids, id); !among {
			others = append(others, id)
		}
	}
	return others
}
