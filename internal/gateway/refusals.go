package gateway

import (
	"sync"
	"time"
)

// How refusals are remembered. Source: docs/decisions/gateway.md, "Webhook signature failure".
const (
	refusalWindow  = time.Hour
	mostRemembered = 1024
)

// Refusal is a delivery that nobody vouches for, to be recorded, or how many like it came since one was.
type Refusal struct {
	Address string // "" stands for all addresses beyond those that are remembered
	Reason  string
	Since   int  // refused since the last one recorded
	Over    bool // the window is over and no further one came: there is only the number to record
}

// Refusals says which refused deliveries are worth a record: anybody can send any number of them, and records are kept for years.
// Of each address and reason it is the first in an hour; the others are counted. It is safe for concurrent use, and its zero
// value is ready. What it remembers is bounded and ends with the process.
type Refusals struct {
	mu   sync.Mutex
	seen map[sender]*tally
}

type sender struct{ address, reason string }

type tally struct {
	recorded time.Time
	since    int
}

// Note takes one refused delivery and returns what to record now: mostly nothing.
func (r *Refusals) Note(address, reason string, now time.Time) (due []Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[sender]*tally{}
	}
	here, since := sender{address, reason}, 0
	for who, known := range r.seen {
		if age := now.Sub(known.recorded); age >= 0 && age < refusalWindow {
			continue
		}
		delete(r.seen, who)
		switch {
		case who == here:
			since = known.since
		case known.since > 0:
			due = append(due, Refusal{Address: who.address, Reason: who.reason, Since: known.since, Over: true})
		}
	}
	if _, known := r.seen[here]; !known && len(r.seen) >= mostRemembered {
		here.address = ""
	}
	if known := r.seen[here]; known != nil {
		known.since++
		return due
	}
	r.seen[here] = &tally{recorded: now}
	return append(due, Refusal{Address: here.address, Reason: reason, Since: since})
}

// Forget takes back that a refusal was recorded, when it could not be: the next one is tried again.
func (r *Refusals) Forget(refusal Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, sender{refusal.Address, refusal.Reason})
}
