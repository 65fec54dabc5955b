package emr

import (
	"sync"
	"time"
)

// mostLooks is how many look-ups are remembered before those that no longer matter are forgotten.
const mostLooks = 1024

// underWay is how long an EMR may still be at work on a request that nobody waits for any more.
const underWay = time.Minute

// looks remembers when the EMR was searched for which observation, before it was last sent, and when nobody waited any longer for the end of
// a send. An EMR may answer a search with what it found when it was asked the same before, and before it has done what it was sent: "not there"
// is believed only when it can be neither.
// Source: docs/decisions/transmissions.md, "Look-ups and the EMR's search cache".
type looks struct {
	cacheLife time.Duration // how long an EMR may keep an answer
	began     time.Time     // an earlier process may have searched for anything until then, and have sent it

	mu     sync.Mutex
	last   map[string]looked
	forget int // how many are remembered when the old ones are forgotten
}

// looked is when an observation was searched for: at all, and last in a way that may be answered with again although it is older than what was
// sent last. left is when a send of it was last given up without an end.
type looked struct{ last, before, left time.Time }

func newLooks(cacheLife time.Duration, now func() time.Time) *looks {
	return &looks{cacheLife: max(cacheLife, 0), began: now(), last: map[string]looked{}, forget: mostLooks}
}

// falseUntil says until when "not there" may be wrong; the zero time means that it is true. takenUp: an earlier process may have searched and
// sent, too.
func (l *looks) falseUntil(observationID string, takenUp bool) (until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	is := l.last[observationID]
	if takenUp && is.before.IsZero() {
		is.before = l.began
	}
	if takenUp && is.left.IsZero() {
		is.left = l.began
	}
	if !is.left.IsZero() {
		until = is.left.Add(underWay)
	}
	if cached := is.before.Add(l.cacheLife); !is.before.IsZero() && cached.After(until) {
		until = cached
	}
	return until
}

// note remembers that the EMR was searched, whatever it answered; stale says that the answer may have been one that was kept, which may be kept
// again.
func (l *looks) note(observationID string, stale bool, now time.Time) {
	l.change(observationID, now, func(is *looked) {
		is.last = now
		if stale {
			is.before = now
		}
	})
}

// abandon remembers that a send was given up while the EMR may be at work on it.
func (l *looks) abandon(observationID string, now time.Time) {
	l.change(observationID, now, func(is *looked) { is.left = now })
}

func (l *looks) change(observationID string, now time.Time, change func(*looked)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) >= l.forget {
		for id, was := range l.last {
			if now.Sub(was.last) >= l.cacheLife && now.Sub(was.left) >= underWay {
				delete(l.last, id)
			}
		}
		l.forget = max(mostLooks, 2*len(l.last))
	}
	is := l.last[observationID]
	change(&is)
	l.last[observationID] = is
}

// sending remembers that an observation is sent: what was found before says no longer what is there.
func (l *looks) sending(observationID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if is, searched := l.last[observationID]; searched {
		is.before = is.last
		l.last[observationID] = is
	}
}
