package gateway

import (
	"sync"
	"time"
)

// Bounds of the rejection log. Source: docs/decisions/gateway.md, "Webhook signature failure".
const (
	rejectionWindow = time.Hour
	maxTracked      = 1024
)

// Rejection is an unauthenticated delivery to record, or the count of similar ones since.
type Rejection struct {
	Address     string // "" for all addresses beyond the tracked ones
	Reason      string
	Since       int  // rejected since the last recorded one
	WindowEnded bool // the window ended without another one: only the count is to be recorded
}

// RejectionLog decides which unauthenticated deliveries to record: anyone can send any number of them, and records are kept for years. It
// records the first one an hour of each address and reason, and counts the others. It is safe for concurrent use, its zero value is ready,
// and its memory is bounded.
type RejectionLog struct {
	mu     sync.Mutex
	counts map[rejectionKey]*rejectionCount
}

type rejectionKey struct{ address, reason string }

type rejectionCount struct {
	recorded time.Time
	since    int
}

// Note counts one rejected delivery and returns what to record now: usually nothing.
func (r *RejectionLog) Note(address, reason string, now time.Time) (due []Rejection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[rejectionKey]*rejectionCount{}
	}
	here, since := rejectionKey{address, reason}, 0
	for key, count := range r.counts {
		if age := now.Sub(count.recorded); age >= 0 && age < rejectionWindow {
			continue
		}
		delete(r.counts, key)
		switch {
		case key == here:
			since = count.since
		case count.since > 0:
			due = append(due, Rejection{Address: key.address, Reason: key.reason, Since: count.since, WindowEnded: true})
		}
	}
	if _, tracked := r.counts[here]; !tracked && len(r.counts) >= maxTracked {
		here.address = ""
	}
	if count := r.counts[here]; count != nil {
		count.since++
		return due
	}
	r.counts[here] = &rejectionCount{recorded: now}
	return append(due, Rejection{Address: here.address, Reason: reason, Since: since})
}

// Unrecord undoes Note for a rejection that could not be recorded, so that the next one is.
func (r *RejectionLog) Unrecord(refusal Rejection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.counts, rejectionKey{refusal.Address, refusal.Reason})
}
