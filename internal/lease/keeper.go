package lease

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// ErrLost means that another process took the lease, or may have. A process takes the lease once: its database may now be
// behind, and another run has to compare the epochs first.
var ErrLost = errors.New("another process may have taken the lease")

// answerTime bounds the wait for an answer of the store.
const answerTime = 2 * time.Second

// Store has the record of one lease, with compare-and-set.
type Store interface {
	// Read returns the newest entry; the zero Entry if there never was one. It may be behind.
	Read(ctx context.Context) (Entry, error)
	// Write stores the record if the newest revision is the given one, and returns the new one. Otherwise it fails with
	// [ErrRevision]; after any other error the record may have been stored.
	Write(ctx context.Context, r Record, revision uint64) (uint64, error)
}

// Options configure a keeper.
type Options struct {
	Store Store
	// Node names this process for people.
	Node string
	// Tenure is that of this machine's former process, if it has one.
	Tenure Tenure
	// Clock is a monotonic clock that counts from a moment before the process; nil is the machine's.
	Clock func() time.Duration
	Log   *slog.Logger
}

// Held is a lease that was taken.
type Held struct {
	Tenure
	// Wrote is the newest epoch in which the database was written, by the record; 0 if it has none.
	Wrote uint64
}

// Keeper takes the lease once and renews it.
type Keeper struct {
	Options
	state State
	until atomic.Int64 // when writing ends, of the clock; 0 before the lease is taken, and after it is lost
	epoch atomic.Uint64
	taken chan Held
	begin chan chan struct{} // of Begin
	begun []chan struct{}    // closed by the next renewal
}

// NewKeeper returns a keeper, which does nothing before Run.
func NewKeeper(o Options) *Keeper {
	if o.Clock == nil {
		o.Clock = machineClock
	}
	return &Keeper{Options: o, state: State{Node: o.Node, Tenure: o.Tenure}, taken: make(chan Held, 1), begin: make(chan chan struct{})}
}

// MayWrite reports whether this process may write now.
func (k *Keeper) MayWrite() bool { return k.Clock() < time.Duration(k.until.Load()) }

// Epoch returns the epoch that this process took; 0 before.
func (k *Keeper) Epoch() uint64 { return k.epoch.Load() }

// LastHeld returns how long ago the permission to write ended; 0 if it did not.
func (k *Keeper) LastHeld() time.Duration {
	return max(0, k.Clock()-time.Duration(k.until.Load()))
}

// Taken receives the lease once, when it is taken.
func (k *Keeper) Taken() <-chan Held { return k.taken }

// Begin records in the store that the database is written in this epoch, and returns when it is stored. Call it before the first answer: a
// database without this epoch is behind from then on.
func (k *Keeper) Begin(ctx context.Context) error {
	stored := make(chan struct{})
	select {
	case k.begin <- stored:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-stored:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run takes the lease, renews it until ctx ends, and returns nil then. It fails with [ErrLost].
func (k *Keeper) Run(ctx context.Context) error {
	var event Event
	for {
		wasHolding := k.state.Holding
		var action Action
		k.state, action = Step(k.state, event, k.Clock())
		if err := k.publish(wasHolding); err != nil {
			return err
		}
		if action.Kind == Wait {
			event = Event{}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(action.Until - k.Clock()):
			case stored := <-k.begin:
				k.state.Wrote, k.begun = k.state.Epoch, append(k.begun, stored)
			}
			continue
		}
		event = k.perform(ctx, action)
	}
}

// publish shows the state to the callers of MayWrite, and reports its changes.
func (k *Keeper) publish(wasHolding bool) error {
	epoch := k.epoch.Load()
	switch {
	case epoch != 0 && k.state.Epoch != epoch:
		k.until.Store(min(k.until.Load(), int64(k.Clock())))
		return ErrLost
	case !k.state.Holding:
		if wasHolding {
			k.Log.Error("the lease was not renewed in time; writes are refused until it is", slog.Uint64("epoch", epoch))
		}
		return nil
	case epoch == 0:
		k.epoch.Store(k.state.Epoch)
		k.until.Store(int64(k.state.WriteUntil()))
		k.Log.Info("lease taken", slog.Uint64("epoch", k.state.Epoch), slog.String("node", k.Node))
		k.taken <- Held{k.state.Tenure, k.state.Wrote}
		return nil
	case !wasHolding:
		k.Log.Info("lease renewed again; writes are accepted", slog.Uint64("epoch", epoch))
	}
	k.until.Store(int64(k.state.WriteUntil()))
	return nil
}

// perform reads or writes the record.
func (k *Keeper) perform(ctx context.Context, action Action) Event {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if action.Kind == Read {
		entry, err := k.Store.Read(ctx)
		if err != nil {
			return k.unanswered(ctx, err)
		}
		return Event{Kind: Seen, Entry: entry}
	}
	revision, err := k.Store.Write(ctx, action.Entry.Record, action.Entry.Revision)
	switch {
	case errors.Is(err, ErrRevision):
		return Event{Kind: Refused}
	case err != nil:
		return k.unanswered(ctx, err)
	}
	for _, each := range k.begun {
		close(each)
	}
	k.begun = nil
	return Event{Kind: Stored, Entry: Entry{Revision: revision}}
}

func (k *Keeper) unanswered(ctx context.Context, err error) Event {
	if !errors.Is(ctx.Err(), context.Canceled) {
		k.Log.Warn("the store of the lease does not answer; trying again", slog.Any("error", err))
	}
	return Event{Kind: Unanswered}
}
