package emr

import (
	"sync"
	"time"
)

// keptLooks is how many look-ups are remembered before those that no longer matter are forgotten.
const keptLooks = 1024

// looks remembers when the EMR was searched for which observation, before it was last sent. An EMR may answer a search with what it found when
// it was asked the same before: "not there" is believed only when that cannot be older than what was sent since.
// Source: docs/decisions/transmissions.md, "Look-ups and the EMR's search cache".
type looks struct {
	keeps time.Duration // how long an EMR may keep an answer
	began time.Time     // an earlier process may have searched for anything until then

	mu     sync.Mutex
	last   map[string]looked
	forget int // how many are remembered when the old ones are forgotten
}

// looked is when an observation was searched for: at all, and last in a way that may be answered with again although it is older than what was
// sent last.
type looked struct{ last, before time.Time }

func newLooks(keeps time.Duration, now func() time.Time) *looks {
	l := &looks{keeps: max(keeps, 0), last: map[string]looked{}, forget: keptLooks}
	if keeps > 0 {
		l.began = now()
	}
	return l
}

// staleUntil says until when an answer may be one that was kept; the zero time means that there is none to keep. takenUp: an earlier process
// may have searched, too.
func (l *looks) staleUntil(observationID string, takenUp bool) time.Time {
	if l.keeps == 0 {
		return time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.last[observationID].before
	if before.IsZero() && takenUp {
		before = l.began
	}
	if before.IsZero() {
		return before
	}
	return before.Add(l.keeps)
}

// note remembers that the EMR was searched, whatever it answered; stale says that the answer may have been one that was kept, which may be kept
// again.
func (l *looks) note(observationID string, stale bool, now time.Time) {
	if l.keeps == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) >= l.forget {
		for id, was := range l.last {
			if now.Sub(was.last) >= l.keeps {
				delete(l.last, id)
			}
		}
		l.forget = max(keptLooks, 2*len(l.last))
	}
	is := l.last[observationID]
	is.last = now
	if stale {
		is.before = now
	}
	l.last[observationID] = is
}

// sending remembers that an observation is sent: what was found before says no longer what is there.
func (l *looks) sending(observationID string) {
	if l.keeps == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if is, searched := l.last[observationID]; searched {
		is.before = is.last
		l.last[observationID] = is
	}
}
