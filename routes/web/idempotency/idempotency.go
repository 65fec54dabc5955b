// Package idempotency stores the keys that callers have used, for which request, and the answers, so that a repeated request is carried out once.
// The package does not depend on the endpoints: the first transaction of a request reserves the key.
//
// A use of a key is kept in memory while the request runs, in the database from its first committed transaction, and with its answer once there is
// one. After a crash the state is therefore correct: without a committed transaction the repeated request is carried out; with one but without an
// answer, it is refused as answer lost.
// Source: docs/decisions/conventions.md, "Idempotency keys".
package idempotency

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/fault"
)

// MaxAnswer bounds the answers that are stored, in bytes.
const MaxAnswer = 2 << 20

// maxLookups bounds concurrent lookups of keys, which take microseconds each.
const maxLookups = 4

// Keys manages the keys of one service. It is safe for concurrent use.
type Keys struct {
	lock    sync.Mutex
	running map[string]string // request hash by key id
	answers *async.GroupCommit[collections.IdempotencyKey, struct{}]
	// endedUses counts the uses that ended, in 256 groups of ids. Begin compares it to detect a use that ended during the lookup.
	endedUses   [256]atomic.Uint64
	reads       collections.ReadCache
	lookupSlots chan struct{}              // held during a lookup; more at once would open and close database connections
	statements  collections.StatementCache // of the transactions that store answers
}

// New returns keys without any use.
func New(log *slog.Logger) *Keys {
	k := &Keys{running: map[string]string{}, lookupSlots: make(chan struct{}, maxLookups)}
	k.answers = async.NewGroupCommit(async.GroupOptions[collections.IdempotencyKey, struct{}]{Store: k.storeAnswers, Log: log})
	return k
}

// Request is a caller's request under a key.
type Request struct {
	Caller, Key    string // Caller is authenticated
	Method, Target string // Target is path and query
	Body           []byte
}

// Use is a running request under a key. The caller must end it with Release.
type Use struct {
	keys       *Keys
	key        string
	row        collections.IdempotencyKey
	isReserved atomic.Bool
	release    sync.Once
}

// Begin returns a Use if the request has to be carried out, or the stored answer if it was carried out before. It returns a fault if the key was
// used for another request, is in use, or has lost its answer.
func (k *Keys) Begin(app core.App, r Request, now time.Time) (use *Use, answered *Answer, err error) {
	id, err := collections.KeyHash(r.Caller, r.Key)
	if err != nil {
		return nil, nil, err
	}
	request, err := collections.RequestHash(r.Method, r.Target, r.Body)
	if err != nil {
		return nil, nil, err
	}
	use = &Use{keys: k, key: r.Key, row: collections.IdempotencyKey{ID: id, Request: request, At: now}}
	before := use.endedCounter().Load()
	answered, stored, err := use.findAnswer(app, now)
	if err != nil || answered != nil {
		return nil, answered, err
	}
	if err := k.start(id, request); err != nil {
		return nil, nil, err
	}
	if use.endedCounter().Load() != before || stored { // another use may have ended since
		answered, stored, err = use.findAnswer(app, now)
	}
	if err == nil && answered == nil && stored {
		err = answerLost() // no use is running that could still store the answer
	}
	if err != nil || answered != nil {
		use.Release()
		return nil, answered, err
	}
	return use, nil, nil
}

// start marks a key as in use, for one caller at a time.
func (k *Keys) start(id, request string) error {
	k.lock.Lock()
	defer k.lock.Unlock()
	switch under, running := k.running[id]; {
	case running && under != request:
		return keyReused()
	case running:
		return inProgress()
	}
	k.running[id] = request
	return nil
}

// findAnswer returns the stored answer of the request, nil if there is none. stored reports whether the key is stored.
func (u *Use) findAnswer(app core.App, now time.Time) (answer *Answer, stored bool, err error) {
	u.keys.lookupSlots <- struct{}{}
	defer func() { <-u.keys.lookupSlots }()
	known, found, err := collections.FindIdempotencyKey(u.keys.reads.In(app), u.row.ID, u.key, now.Add(-collections.IdempotencyKeyLifetime))
	switch {
	case err != nil || !found:
		return nil, false, err
	case known.Request != u.row.Request:
		return nil, true, keyReused()
	}
	return decode(known.Answer), true, nil
}

// endedCounter returns the counter of ended uses for the group of this id.
func (u *Use) endedCounter() *atomic.Uint64 { return &u.keys.endedUses[u.row.ID[0]] }

func keyReused() *fault.Error {
	return fault.New(fault.Unprocessable, "idempotency_key_reused", "This "+Header+" was used for another request.")
}

func inProgress() *fault.Error {
	return fault.New(fault.Conflict, "idempotency_in_progress", "The first request with this "+Header+" is still being carried out.").After(time.Second)
}

func answerLost() *fault.Error {
	return fault.New(fault.Unprocessable, "idempotency_answer_lost",
		"The first request with this "+Header+" was carried out, at least in part, but its answer was not stored. Check the current state before you send the request with another key.")
}

// In returns an app that reserves the key in its first transaction.
func (u *Use) In(app core.App) core.App { return &reservingApp{app, u} }

// Reserve stores in a transaction that the key is used.
func (u *Use) Reserve(tx core.App) error {
	if u.isReserved.Load() {
		return nil
	}
	noted, err := collections.ReserveIdempotencyKey(tx, u.row, u.row.At.Add(-collections.IdempotencyKeyLifetime))
	if err == nil && !noted {
		err = inProgress() // another process reserved it
	}
	return err
}

type reservingApp struct {
	core.App
	use *Use
}

// RunInTransaction implements [core.App].
func (a *reservingApp) RunInTransaction(do func(tx core.App) error) error {
	return a.App.RunInTransaction(func(tx core.App) error {
		if err := a.use.Reserve(tx); err != nil {
			return err
		}
		err := do(tx)
		if err == nil {
			a.use.isReserved.Store(true) // a commit that fails now leaves the flag set: the use is then dropped or refused as answer lost
		}
		return err
	})
}

// Save implements [core.App]. It runs in a transaction of its own.
func (a *reservingApp) Save(model core.Model) error {
	return a.RunInTransaction(func(tx core.App) error { return tx.Save(model) })
}

// Delete implements [core.App].
func (a *reservingApp) Delete(model core.Model) error {
	return a.RunInTransaction(func(tx core.App) error { return tx.Delete(model) })
}

// Stored reports whether a transaction of the request has reserved the key.
func (u *Use) Stored() bool { return u.isReserved.Load() }

// Store stores the answer durably.
func (u *Use) Store(app core.App, a Answer) error {
	text, err := a.encode()
	if err != nil {
		return err
	}
	row := u.row
	if row.Answer, err = collections.SealAnswer(text, u.key, row.ID); err != nil {
		return err
	}
	_, err = u.keys.answers.Commit(app, row)
	return err
}

// StoreUnknown stores that the request was carried out and that its answer is unknown.
func (u *Use) StoreUnknown(app core.App) error {
	if u.Stored() {
		return nil
	}
	return app.RunInTransaction(u.Reserve)
}

// Drop deletes the use, so that the request may be repeated.
func (u *Use) Drop(app core.App) error {
	if !u.Stored() {
		return nil
	}
	return collections.DeleteIdempotencyKey(app, u.row.ID)
}

// Release ends the use. Further calls do nothing.
func (u *Use) Release() {
	u.release.Do(func() {
		u.keys.lock.Lock()
		defer u.keys.lock.Unlock()
		delete(u.keys.running, u.row.ID)
		u.endedCounter().Add(1)
	})
}

func (k *Keys) storeAnswers(app core.App, uses []*async.GroupItem[collections.IdempotencyKey, struct{}]) error {
	return app.RunInTransaction(func(tx core.App) error {
		tx = k.statements.In(tx)
		for _, use := range uses {
			if err := collections.StoreIdempotencyKey(tx, use.In); err != nil {
				return err
			}
		}
		return nil
	})
}
