package emr

import (
	"sync"
	"time"
)

// keptLooks is how many look-ups are remembered before those that no longer matter are forgotten.
const keptLooks = 1024

// looks remembers when the EMR was searched for which observation. An EMR may answer a search with what it found when it was asked the same
// before: "not there" is believed only when that cannot be older than what was sent since.
// Source: docs/decisions/transmissions.md, "Look-ups and the EMR's search cache".
type looks struct {
	keeps time.Duration // how long an EMR may keep an answer
	began time.Time     // an earlier process may have searched for anything until then

	mu     sync.Mutex
	last   map[string]time.Time
	forget int // how many are remembered when the old ones are forgotten
}

func newLooks(keeps time.Duration, now func() time.Time) *looks {
	l := &looks{keeps: max(keeps, 0), last: map[string]time.Time{}, forget: keptLooks}
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
	last, looked := l.last[observationID]
	if !looked && takenUp {
		last, looked = l.began, true
	}
	if !looked {
		return time.Time{}
	}
	return last.Add(l.keeps)
}

// note remembers that the EMR was searched, whatever it answered.
func (l *looks) note(observationID string, now time.Time) {
	if l.keeps == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) >= l.forget {
		for id, at := range l.last {
			if now.Sub(at) >= l.keeps {
				delete(l.last, id)
			}
		}
		l.forget = max(keptLooks, 2*len(l.last))
	}
	l.last[observationID] = now
}
