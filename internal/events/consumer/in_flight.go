package consumer

import (
	"slices"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// inFlight are the delivered events that are not stored yet. Devices overtake each other, so the practice's position is the one before the
// earliest of them.
type inFlight struct {
	lock    sync.Mutex
	inWork  map[uint64]*event
	highest uint64 // delivered
	at      time.Time
}

func newInFlight() *inFlight { return &inFlight{inWork: map[uint64]*event{}} }

// reset removes all events, because they are delivered again.
func (f *inFlight) reset() {
	f.lock.Lock()
	defer f.lock.Unlock()
	clear(f.inWork)
	f.highest, f.at = 0, time.Time{}
}

// start adds an event; false if it is in work already.
func (f *inFlight) start(e *event) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	if _, isInWork := f.inWork[e.sequence]; isInWork {
		return false
	}
	f.inWork[e.sequence] = e
	if e.sequence > f.highest {
		f.highest, f.at = e.sequence, e.at
	}
	return true
}

// end removes an event.
func (f *inFlight) end(e *event) {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.inWork, e.sequence)
}

func (f *inFlight) all() []*event {
	f.lock.Lock()
	defer f.lock.Unlock()
	list := make([]*event, 0, len(f.inWork))
	for _, e := range f.inWork {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *event) int { return a.at.Compare(b.at) })
	return list
}

// positionAfter returns the position when an event is stored: all before the earliest of the others in work are.
func (f *inFlight) positionAfter(stored *event) collections.EventPosition {
	f.lock.Lock()
	defer f.lock.Unlock()
	position := collections.EventPosition{Sequence: f.highest, PublishedAt: f.at}
	for sequence, e := range f.inWork {
		if e != stored && sequence <= position.Sequence {
			position = collections.EventPosition{Sequence: sequence - 1, PublishedAt: e.at}
		}
	}
	return position
}

// advance stores the present position, outside any event.
func (f *inFlight) advance(app core.App, stream string) error {
	return collections.AdvanceEventPosition(app, stream, f.positionAfter(nil)) // a write, which also proves that the database accepts one
}
