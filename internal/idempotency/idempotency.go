// Package idempotency knows which keys callers have used, for what, and what they were answered, so that a request that is sent again is carried
// out once. It knows neither endpoints nor what they do: that something was stored it notes in the very transaction that stored it.
//
// A use of a key is known in memory while it is carried out, in the database from the first transaction that was committed for it, and with its
// answer once there is one. So what a process that was killed leaves behind is true: nothing, where nothing was stored, and the request is
// carried out when it comes again; or a use without an answer, which is told and not repeated.
// Source: docs/decisions/conventions.md, "Idempotency keys".
package idempotency

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/fault"
)

// KnownFor is how long a key is known. Source: draft-ietf-httpapi-idempotency-key-header-07, section 2.3: the server says how long.
const KnownFor = 24 * time.Hour

// MaxAnswer bounds the answers that are stored, in bytes.
const MaxAnswer = 2 << 20

// lookAtOnce is how many keys are looked up at a time, which takes microseconds each.
const lookAtOnce = 4

// Keys are the keys of one service. They are safe for concurrent use.
type Keys struct {
	lock    sync.Mutex
	running map[string]string // id to request
	answers *async.Group[collections.IdempotencyKey, struct{}]
	// ended counts the uses that ended, of some ids together, so that who begins knows whether any did meanwhile.
	ended      [256]atomic.Uint64
	reads      collections.ReadCache
	looking    chan struct{}              // held by who looks a key up: more at once would open and close connections all the time
	statements collections.StatementCache // of those who store answers, one after the other
}

// New returns an empty memory.
func New(log *slog.Logger) *Keys {
	k := &Keys{running: map[string]string{}, looking: make(chan struct{}, lookAtOnce)}
	k.answers = async.NewGroup(async.GroupOptions[collections.IdempotencyKey, struct{}]{Store: k.storeAll, Log: log})
	return k
}

// Request is what a caller asks for under a key.
type Request struct {
	Caller, Key    string // Caller is somebody known
	Method, Target string // Target is the path and the query
	Body           []byte
}

// Use is a request that is carried out under a key, by one caller at a time. It must be ended with Release.
type Use struct {
	keys    *Keys
	key     string
	row     collections.IdempotencyKey
	noted   atomic.Bool
	release sync.Once
}

// Begin says what to do with a request: carry it out, and say so with the Use; or give the answer it was given before. A key that was used for
// something else, that somebody is using, or whose answer is lost, is a fault.
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
	before := use.others().Load()
	answered, stored, err := use.find(app, now)
	if err != nil || answered != nil {
		return nil, answered, err
	}
	if err := k.start(id, request); err != nil {
		return nil, nil, err
	}
	if use.others().Load() != before || stored { // whoever ran may have ended meanwhile
		answered, stored, err = use.find(app, now)
	}
	if err == nil && answered == nil && stored {
		err = lost() // and nobody is about to say
	}
	if err != nil || answered != nil {
		use.Release()
		return nil, answered, err
	}
	return use, nil, nil
}

// start lets one caller in at a time.
func (k *Keys) start(id, request string) error {
	k.lock.Lock()
	defer k.lock.Unlock()
	switch under, running := k.running[id]; {
	case running && under != request:
		return reused()
	case running:
		return inProgress()
	}
	k.running[id] = request
	return nil
}

// find is the answer that the request was given before, if that is known. stored: something was done for it.
func (u *Use) find(app core.App, now time.Time) (answer *Answer, stored bool, err error) {
	u.keys.looking <- struct{}{}
	defer func() { <-u.keys.looking }()
	known, found, err := collections.FindIdempotencyKey(u.keys.reads.In(app), u.row.ID, u.key, now.Add(-KnownFor))
	switch {
	case err != nil || !found:
		return nil, false, err
	case known.Request != u.row.Request:
		return nil, true, reused()
	}
	return decode(known.Answer), true, nil
}

// others counts the uses that ended of ids like this one.
func (u *Use) others() *atomic.Uint64 { return &u.keys.ended[u.row.ID[0]] }

func reused() *fault.Error {
	return fault.New(fault.Unprocessable, "idempotency_key_reused", "This "+Header+" was used for another request.")
}

func inProgress() *fault.Error {
	return fault.New(fault.Conflict, "idempotency_in_progress", "The first request with this "+Header+" is still being carried out.").After(time.Second)
}

func lost() *fault.Error {
	return fault.New(fault.Unprocessable, "idempotency_answer_lost",
		"What was first asked for with this "+Header+" was carried out, at least in part, and its answer is not known. Look at what is there before you send it with another key.")
}

// In returns the app in which the first transaction notes that the key was used.
func (u *Use) In(app core.App) core.App { return &notingApp{app, u} }

// Note notes in a transaction that something was done for the request.
func (u *Use) Note(tx core.App) error {
	if u.noted.Load() {
		return nil
	}
	noted, err := collections.ReserveIdempotencyKey(tx, u.row, u.row.At.Add(-KnownFor))
	if err == nil && !noted {
		err = inProgress() // by another process
	}
	return err
}

type notingApp struct {
	core.App
	use *Use
}

// RunInTransaction implements [core.App].
func (a *notingApp) RunInTransaction(do func(tx core.App) error) error {
	return a.App.RunInTransaction(func(tx core.App) error {
		if err := a.use.Note(tx); err != nil {
			return err
		}
		err := do(tx)
		if err == nil {
			a.use.noted.Store(true) // but for a commit that fails: then it is dropped, or told as lost, with nothing behind it
		}
		return err
	})
}

// Save implements [core.App]: it has a transaction of its own.
func (a *notingApp) Save(model core.Model) error {
	return a.RunInTransaction(func(tx core.App) error { return tx.Save(model) })
}

// Delete implements [core.App].
func (a *notingApp) Delete(model core.Model) error {
	return a.RunInTransaction(func(tx core.App) error { return tx.Delete(model) })
}

// Stored reports whether something was stored for the request.
func (u *Use) Stored() bool { return u.noted.Load() }

// Store stores the answer, durably.
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

// StoreUnknown stores that the request was carried out, and that nobody knows what was answered.
func (u *Use) StoreUnknown(app core.App) error {
	if u.Stored() {
		return nil
	}
	return app.RunInTransaction(u.Note)
}

// Drop forgets the use: the request may be sent again.
func (u *Use) Drop(app core.App) error {
	if !u.Stored() {
		return nil
	}
	return collections.DeleteIdempotencyKey(app, u.row.ID)
}

// Release ends the use; a second time does nothing.
func (u *Use) Release() {
	u.release.Do(func() {
		u.keys.lock.Lock()
		defer u.keys.lock.Unlock()
		delete(u.keys.running, u.row.ID)
		u.others().Add(1)
	})
}

func (k *Keys) storeAll(app core.App, uses []*async.GroupItem[collections.IdempotencyKey, struct{}]) error {
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

// sweptTogether bounds what one transaction removes, so that readings never wait long for it.
const sweptTogether = 500

// Sweep forgets what is not known any more, and says how many uses that were.
func Sweep(ctx context.Context, app core.App, now time.Time) (gone int, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return gone, err
		}
		n, err := collections.DeleteIdempotencyKeys(app, now.Add(-KnownFor), sweptTogether)
		if gone += n; err != nil || n < sweptTogether {
			return gone, err
		}
	}
}
