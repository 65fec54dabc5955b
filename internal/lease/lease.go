// Package lease decides which process may write a practice's database. The lease is one record in a store with
// compare-and-set; the rules are the pure function [Step], and [Keeper] applies its actions. No process reads a clock that
// another process wrote: holder and waiter each count on their own monotonic clock. The argument for safety, with its
// assumptions, is in docs/lease.md.
package lease

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"
)

// The times of a lease. The holder stops writing at life − margin = 10 s after it sent its last renewal, and a waiter takes
// the lease 20 s after it first saw the same revision, so the clocks of two machines may differ in speed by a factor of 2.
const (
	// Life is how long the holder may count on a renewal.
	Life = 15 * time.Second
	// Margin is how long before the end of its life the holder stops writing.
	Margin = 5 * time.Second
	// RenewEvery is the time between two renewals.
	RenewEvery = 3 * time.Second
	// Patience is how long a waiter must see the same revision before it takes the lease.
	Patience = 20 * time.Second
	// readEvery is the time between two readings of a waiter.
	readEvery = time.Second
)

// Record is the value of the lease in the store, as JSON. It contains no time.
type Record struct {
	Node  string `json:"node"`
	Nonce string `json:"nonce"`
	// Wrote is the newest epoch in which the database was written; every holder passes it on. A database without it is behind.
	Wrote uint64 `json:"wrote"`
}

// Entry is what the store has: the record and its revision. A deleted record, one that cannot be read, and none at all
// are the zero Record; a deletion has a revision too.
type Entry struct {
	Record
	Revision uint64
}

// parseRecord reads a record. Anything that no holder wrote is the zero Record.
func parseRecord(value []byte) Record {
	var r Record
	if err := json.Unmarshal(value, &r); err != nil || r.Nonce == "" || r.Node == "" {
		return Record{}
	}
	return r
}

// ErrRevision is a store's error for a write that was refused. After any other error the record may have been written.
var ErrRevision = errors.New("the record has another revision")

// Tenure is what a process needs to keep its epoch across a restart. It stays on the machine: a copy of the database must
// not contain it.
type Tenure struct {
	Nonce string `json:"nonce"`
	Epoch uint64 `json:"epoch"`
}

// State is the lease as one process sees it. The zero State with a node waits. Times are of the process's monotonic
// clock.
type State struct {
	Node string
	// Tenure is the process's own hold, current or past. Epoch is 0 until the lease is taken.
	Tenure
	// Wrote is the newest epoch in which the database was written; 0 if the record has none.
	Wrote uint64
	// Holding is true from the lease's taking until it is lost or its life has ended.
	Holding bool

	revision uint64        // newest revision seen
	seen     bool          // whether any revision was seen
	since    time.Duration // when this revision was first seen
	from     time.Duration // before the last answered renewal was sent
	sent     time.Duration // before the last write was sent
	unknown  time.Duration // before the first write without a known outcome was sent; 0 if there is none
	inDoubt  bool          // the record must be read before the next write
}

// MayWrite reports whether the process may write at the given time.
func (s State) MayWrite(now time.Duration) bool { return s.Holding && now < s.WriteUntil() }

// WriteUntil is when the holder stops writing unless it renews the lease.
func (s State) WriteUntil() time.Duration { return s.from + Life - Margin }

// EventKind is a kind of event.
type EventKind int

// The kinds of events.
const (
	Tick       EventKind = iota // the time of the last Wait has come
	Seen                        // Entry was read
	Stored                      // the write was stored as Entry.Revision
	Refused                     // the write was refused: the record has another revision
	Unanswered                  // a read or a write failed; the write may have been stored, or may still be
)

// Event is what happened.
type Event struct {
	Kind  EventKind
	Entry Entry
}

// ActionKind is a kind of action.
type ActionKind int

// The kinds of actions.
const (
	Wait  ActionKind = iota // until Action.Until
	Read                    // the record
	Write                   // Action.Entry.Record, if the store has the revision Action.Entry.Revision
)

// Action is what the process does next. There is one at a time.
type Action struct {
	Kind  ActionKind
	Until time.Duration
	Entry Entry
}

// Step returns the state after an event, and the next action. It calls nothing, except that a waiter draws a nonce before it
// takes the lease. now is positive.
func Step(s State, e Event, now time.Duration) (State, Action) {
	if s.Holding && now >= s.from+Life {
		s.Holding = false
	}
	switch e.Kind {
	case Seen:
		s.inDoubt = false
		return s.see(e.Entry, now)
	case Stored:
		return s.own(e.Entry.Revision, s.sent, now)
	case Refused, Unanswered:
		s.inDoubt = true
		return s, Action{Kind: Wait, Until: now + readEvery}
	case Tick:
	}
	if s.Holding && !s.inDoubt {
		return s.write(s.revision, now)
	}
	return s, Action{Kind: Read}
}

// see decides by what the store has.
func (s State) see(e Entry, now time.Duration) (State, Action) {
	mine := e.Nonce != "" && e.Nonce == s.Nonce
	switch {
	case mine && s.unknown != 0 && e.Revision > s.revision: // a write without an answer was stored
		return s.own(e.Revision, s.unknown, now)
	case s.Holding && e.Revision <= s.revision: // the write was not stored, or the answer comes from a replica that is behind
		if s.unknown != 0 {
			return s.write(s.revision, now)
		}
		return s.next(now)
	case s.MayWrite(now) && e.Nonce == "": // deleted or overwritten: until then no waiter can have taken the lease
		return s.write(e.Revision, now)
	case mine && s.Epoch != 0: // a restart, or an outage without another holder: no other process wrote in between
		s.noteRevision(e, now)
		return s.write(e.Revision, now)
	}
	s.Holding = false
	if s.noteRevision(e, now) {
		s.Tenure, s.unknown = Tenure{}, 0 // another process may have held the lease
	}
	if now < s.since+Patience {
		return s, Action{Kind: Wait, Until: min(now+readEvery, s.since+Patience)}
	}
	if s.Nonce == "" {
		s.Nonce = rand.Text()
	}
	return s.write(e.Revision, now)
}

// next waits for the next renewal or reading.
func (s State) next(now time.Duration) (State, Action) {
	if s.Holding {
		return s, Action{Kind: Wait, Until: max(now, s.sent+RenewEvery)}
	}
	return s, Action{Kind: Wait, Until: now + readEvery}
}

// write sends the process's record, to take, renew or repair the lease.
func (s State) write(revision uint64, now time.Duration) (State, Action) {
	s.sent = now
	if s.unknown == 0 {
		s.unknown = now
	}
	return s, Action{Kind: Write, Entry: Entry{Record: Record{Node: s.Node, Nonce: s.Nonce, Wrote: s.Wrote}, Revision: revision}}
}

// own notes that the record of a revision is the process's, by a write that was sent at the given time or later. The first
// such revision of a tenure is its epoch.
func (s State) own(revision uint64, sent, now time.Duration) (State, Action) {
	if s.Epoch == 0 {
		s.Epoch = revision
	}
	s.revision, s.since = revision, now
	s.from, s.unknown = sent, 0
	s.Holding = now < sent+Life
	return s.next(now)
}

// noteRevision notes the revision, and reports whether it is new to this process.
func (s *State) noteRevision(e Entry, now time.Duration) (changed bool) {
	if s.seen && e.Revision == s.revision {
		return false
	}
	s.revision, s.Wrote, s.seen, s.since = e.Revision, e.Wrote, true, now
	return true
}
