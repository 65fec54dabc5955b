package lease_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/lease"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// world is a simulation in true time: a linearizable store, a network that delays and loses, and processes with clocks that run
// at different speeds, that pause and restart.
type world struct {
	*rand.Rand
	now     time.Duration
	revs    uint64
	entry   lease.Entry
	procs   []*process
	queue   []scheduled // in order of time
	commits []commit
	holders map[uint64]string // by epoch
	cut     map[*process]bool
	takes   int
	calm    bool // messages are neither late nor lost
}

type scheduled struct {
	at  time.Duration
	run func()
}

// commit is an answered write.
type commit struct {
	at    time.Duration
	epoch uint64
}

type process struct {
	*world
	name   string
	speed  float64
	offset time.Duration
	state  lease.State
	kept   lease.Tenure // the file that survives a restart on the same machine
	paused time.Duration
	life   int // counts restarts, so that a message to the former process is dropped
}

// at runs something after a time.
func (w *world) at(after time.Duration, run func()) {
	s := scheduled{w.now + after, run}
	i := len(w.queue)
	for i > 0 && w.queue[i-1].at > s.at {
		i--
	}
	w.queue = append(w.queue[:i], append([]scheduled{s}, w.queue[i:]...)...)
}

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.Int64N(int64(most-least)))
}

// clock is the process's monotonic clock.
func (p *process) clock() time.Duration {
	return p.offset + time.Duration(float64(p.now)*p.speed)
}

// step delivers an event to the process that was running when it was sent, after its pause.
func (p *process) step(e lease.Event, life int) {
	switch {
	case life != p.life:
		return
	case p.now < p.paused:
		p.at(p.paused-p.now+1, func() { p.step(e, life) })
		return
	}
	var action lease.Action
	p.state, action = lease.Step(p.state, e, p.clock())
	if p.state.Holding {
		if by, known := p.holders[p.state.Epoch]; known && by != p.name {
			panic(fmt.Sprintf("epoch %d of %s and %s", p.state.Epoch, by, p.name))
		} else if !known {
			p.takes++
		}
		p.holders[p.state.Epoch], p.kept = p.name, p.state.Tenure
	}
	switch action.Kind {
	case lease.Wait:
		p.at(time.Duration(float64(max(0, action.Until-p.clock()))/p.speed)+1, func() { p.step(lease.Event{}, life) })
	case lease.Read, lease.Write:
		p.send(action, life)
	}
}

// send sends a request. It can arrive late, be lost, or be answered too late; the process gives up after two seconds.
func (p *process) send(action lease.Action, life int) {
	answered := false
	answer := func(e lease.Event) {
		if !answered {
			answered = true
			p.step(e, life)
		}
	}
	p.at(2*time.Second, func() { answer(lease.Event{Kind: lease.Unanswered}) })
	delay := p.between(time.Millisecond, 300*time.Millisecond)
	if !p.calm && p.IntN(20) == 0 {
		delay = p.between(time.Second, 40*time.Second) // also past the end of the process
	}
	p.at(delay, func() {
		if p.cut[p] {
			return
		}
		result := p.serve(action)
		if p.calm || p.IntN(20) != 0 { // an answer can be lost
			p.at(p.between(time.Millisecond, 300*time.Millisecond+p.late()), func() {
				if !p.cut[p] {
					answer(result)
				}
			})
		}
	})
}

// late is how late an answer may be.
func (w *world) late() time.Duration {
	if w.calm || w.IntN(10) != 0 {
		return 0
	}
	return 3 * time.Second
}

// serve is the store.
func (w *world) serve(action lease.Action) lease.Event {
	switch {
	case action.Kind == lease.Read:
		return lease.Event{Kind: lease.Seen, Entry: w.entry}
	case action.Entry.Revision != w.entry.Revision:
		return lease.Event{Kind: lease.Refused}
	}
	w.put(action.Entry.Record)
	return lease.Event{Kind: lease.Stored, Entry: lease.Entry{Revision: w.entry.Revision}}
}

func (w *world) put(r lease.Record) {
	w.revs += 1 + uint64(w.IntN(3)) // other keys share the store
	w.entry = lease.Entry{Record: r, Revision: w.revs}
}

// write commits and answers, with a time in between, which includes any pause. Both need the lease.
func (p *process) write() {
	p.at(p.between(time.Millisecond, 500*time.Millisecond), p.write)
	if p.now < p.paused || !p.state.MayWrite(p.clock()) {
		return
	}
	made, life := commit{p.now, p.state.Epoch}, p.life
	var answer func()
	answer = func() {
		switch {
		case life != p.life:
		case p.now < p.paused:
			p.at(p.paused-p.now+1, answer)
		case p.state.MayWrite(p.clock()) && p.state.Epoch == made.epoch:
			p.commits = append(p.commits, made)
		}
	}
	p.at(p.between(time.Millisecond, 2*time.Second), answer)
}

func (p *process) restart() {
	p.life++
	p.state = lease.State{Node: p.name}
	if p.IntN(3) != 0 {
		p.state.Tenure = p.kept
	} else {
		p.kept = lease.Tenure{}
	}
	p.step(lease.Event{}, p.life)
}

// disturb does one thing that goes wrong.
func (w *world) disturb() {
	p := w.procs[w.IntN(len(w.procs))]
	switch w.IntN(7) {
	case 0, 1:
		w.cut[p] = true
		w.at(w.between(time.Second, time.Minute), func() { delete(w.cut, p) })
	case 2, 3:
		p.paused = w.now + w.between(time.Second, 40*time.Second)
	case 4:
		p.restart()
	case 5:
		w.put(lease.Record{}) // deleted, or garbage
	case 6:
		for _, each := range w.procs { // the store has no quorum
			w.cut[each] = true
			w.at(w.between(time.Second, 30*time.Second), func() { delete(w.cut, each) })
		}
	}
}

// newWorld makes three processes with clocks that differ in speed by a factor of up to 1.9.
func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), holders: map[uint64]string{}, cut: map[*process]bool{}}
	for i := range 3 {
		p := &process{world: w, name: fmt.Sprint("node", i), speed: 1 + 0.9*w.Float64(), offset: w.between(time.Second, 1000*time.Hour)}
		p.state.Node = p.name
		w.procs = append(w.procs, p)
		w.at(w.between(0, 5*time.Second), func() { p.step(lease.Event{}, p.life); p.write() })
	}
	return w
}

// run lets the world run until a time and returns the largest number of processes that could write at once.
func (w *world) run(until time.Duration) (most int) {
	for len(w.queue) > 0 && w.queue[0].at <= until {
		next := w.queue[0]
		w.queue, w.now = w.queue[1:], next.at
		next.run()
		most = max(most, w.writers())
	}
	return most
}

func (w *world) writers() (n int) {
	for _, p := range w.procs {
		if p.state.MayWrite(p.clock()) {
			n++
		}
	}
	return n
}

// Through partitions, pauses, lost and late answers, deletions, garbage, restarts, and clocks of any offset and of speeds that
// differ by less than a factor of two, there are never two writers, and no commit follows one of a later epoch.
func TestNeverTwoHolders(t *testing.T) {
	takes := 0
	for seed := range uint64(vigiltest.Rounds(10_000, 1_000)) {
		w := newWorld(seed)
		for range 12 {
			w.at(w.between(20*time.Second, 5*time.Minute), w.disturb)
		}
		if most := w.run(6 * time.Minute); most > 1 {
			t.Fatalf("seed %d: %d processes could write at once", seed, most)
		}
		slices.SortFunc(w.commits, func(a, b commit) int { return cmp.Compare(a.at, b.at) })
		if !slices.IsSortedFunc(w.commits, func(a, b commit) int { return cmp.Compare(a.epoch, b.epoch) }) {
			t.Fatalf("seed %d: a commit of one epoch follows one of a later epoch", seed)
		}
		takes += w.takes
	}
	t.Logf("the lease was taken %d times", takes)
	if takes < 2000 {
		t.Errorf("the lease was taken %d times: the simulation disturbs too little", takes)
	}
}

// The checker finds two writers where the rules' assumption does not hold: a clock that is more than twice as fast.
func TestCheckerFindsTwoHolders(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(seed)
		for i, p := range w.procs {
			p.speed = []float64{1, 4, 4}[i]
		}
		for range 12 {
			w.at(w.between(20*time.Second, 5*time.Minute), w.disturb)
		}
		if w.run(6*time.Minute) > 1 {
			return
		}
	}
	t.Error("no case with two writers, although clocks differ by a factor of four")
}

// After the holder's death a waiter takes the lease within 23 seconds.
func TestTakenAfterDeath(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(seed)
		w.calm = true
		for _, p := range w.procs {
			p.speed = 1
		}
		w.run(w.between(30*time.Second, time.Minute))
		died := w.now
		for _, p := range w.procs {
			if p.state.MayWrite(p.clock()) {
				p.life, p.state = -1, lease.State{}
			}
		}
		for w.writers() == 0 {
			w.run(w.queue[0].at)
		}
		if took := w.now - died; took > 23*time.Second {
			t.Errorf("seed %d: taken after %v", seed, took)
		}
	}
}
