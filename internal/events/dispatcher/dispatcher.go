// Package dispatcher holds the events that no single practice owns: it opens them with the company's key, counts those that a person has to see
// at once, and delivers them when a practice registers the device. Rules: docs/decisions/events.md, "Unassigned and dead events".
package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"filippo.io/age"

	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/events/directory"
	"github.com/vigilhealth/vigil/internal/events/envelope"
	"github.com/vigilhealth/vigil/internal/gateway"
)

// scanInterval is how often the events are looked through; also at each change of the directory.
const scanInterval = 5 * time.Second

// Options are the dispatcher's dependencies.
type Options struct {
	Stream       *events.Stream
	Directory    *directory.Directory
	Adapters     gateway.Adapters
	DirectoryKey []byte
	Identities   []age.Identity
	Clock        func() time.Time
	Log          *slog.Logger
	// Interval is how often the events are looked through; 0 for five seconds.
	Interval time.Duration
}

// Dispatcher delivers unassigned events.
type Dispatcher struct {
	Options
	opened map[uint64]Event // by sequence

	lock  sync.Mutex
	state State
}

// New returns a dispatcher.
func New(o Options) *Dispatcher {
	if o.Interval == 0 {
		o.Interval = scanInterval
	}
	return &Dispatcher{Options: o, opened: map[uint64]Event{}}
}

// Event is what the dispatcher keeps of an unassigned event. It holds no content.
type Event struct {
	Sequence uint64
	At       time.Time
	Vendor   string
	Reason   string // one of the reasons in package events
	// Critical: a value is beyond a default critical bound, or out of range.
	Critical bool
	ids      []directory.ID
	measured time.Time
}

// State is what the last look through the stream found.
type State struct {
	At         time.Time // zero before the first
	Unassigned []Event
	Dead       map[string]int       // by practice
	Unconsumed map[string]time.Time // the oldest event that a practice has not stored; zero for none
}

// State returns the last state.
func (d *Dispatcher) State() State {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.state
}

// Run delivers events until ctx ends.
func (d *Dispatcher) Run(ctx context.Context) {
	for ticks := time.Tick(d.Interval); ; {
		changed := d.Directory.Changed()
		if d.Directory.Loaded() {
			if err := d.scan(ctx); err != nil && ctx.Err() == nil {
				d.Log.Warn("dispatcher could not read the unassigned events; trying again", slog.Any("error", err))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		case <-changed:
			select { // a practice changes many claims at a time
			case <-ctx.Done():
				return
			case <-time.After(d.Interval / 10):
			}
		}
	}
}

// scan delivers what has an owner now, and updates the state.
func (d *Dispatcher) scan(ctx context.Context) error {
	list, err := d.Stream.All(ctx, events.Unassigned)
	if err != nil {
		return err
	}
	state := State{Dead: map[string]int{}, Unconsumed: map[string]time.Time{}}
	kept := map[uint64]Event{}
	for _, stored := range list {
		event := d.open(stored)
		owner := d.Directory.Owner(event.measured, event.ids...)
		if owner.Practice != "" && d.Directory.Recipient(owner.Practice) != "" {
			if err := d.deliver(ctx, stored, owner.Practice); err != nil {
				return err
			}
			continue
		}
		if owner.Overlaps {
			event.Reason = events.ReasonOverlap
		}
		kept[stored.Sequence] = event
		state.Unassigned = append(state.Unassigned, event)
	}
	d.opened = kept
	dead, err := d.Stream.All(ctx, events.Dead)
	if err != nil {
		return err
	}
	for _, practice := range d.Directory.Practices() {
		state.Dead[practice] = 0
		if state.Unconsumed[practice], err = d.Stream.OldestUnconsumed(ctx, practice); err != nil {
			return err
		}
	}
	for _, stored := range dead {
		state.Dead[stored.Header[events.PracticeHeader]]++
	}
	state.At = d.Clock()
	d.lock.Lock()
	defer d.lock.Unlock()
	d.state = state
	return nil
}

// open returns what matters of an event; each is opened once. One that cannot be opened is critical, because its values are unknown.
func (d *Dispatcher) open(stored events.Stored) Event {
	if event, known := d.opened[stored.Sequence]; known {
		return event
	}
	event := Event{Sequence: stored.Sequence, At: stored.At, Reason: stored.Header[events.ReasonHeader], Critical: true}
	opened, err := envelope.Open(stored.Data, d.Identities...)
	if err != nil {
		d.Log.Error("dispatcher cannot open an unassigned event: add the former key to VIGIL_ORGANIZATION_IDENTITIES",
			slog.Uint64("sequence", stored.Sequence), slog.Any("error", err))
		event.Reason = events.ReasonNoIdentity
		return event
	}
	parsed := d.parse(opened)
	event.Vendor, event.Critical, event.measured = opened.Vendor, parsed.IsDangerous(), parsed.EffectiveTime()
	event.ids = directory.Identifiers(d.DirectoryKey, parsed)
	return event
}

// parse returns what can be read of an event; a rejected one may hold a dangerous value too.
func (d *Dispatcher) parse(e envelope.Envelope) gateway.Event {
	adapter, known := d.Adapters[gateway.Vendor(e.Vendor)]
	if !known {
		return gateway.Event{ReceivedAt: e.ReceivedAt}
	}
	event, _ := gateway.Parse(adapter, e.Body, e.ReceivedAt) // the practice reports the error
	return event
}

// Content opens an unassigned event, for a person.
func (d *Dispatcher) Content(ctx context.Context, sequence uint64) (envelope.Envelope, error) {
	stored, err := d.Stream.Get(ctx, events.Unassigned, sequence)
	if err != nil {
		return envelope.Envelope{}, err
	}
	return envelope.Open(stored.Data, d.Identities...)
}

// Assign delivers an unassigned event to a practice, as a person decided.
func (d *Dispatcher) Assign(ctx context.Context, sequence uint64, practice string) error {
	if d.Directory.Recipient(practice) == "" {
		return fmt.Errorf("the practice %q has published no key", practice)
	}
	stored, err := d.Stream.Get(ctx, events.Unassigned, sequence)
	if err != nil {
		return err
	}
	return d.deliver(ctx, stored, practice)
}

// deliver seals an event for its practice and moves it there.
func (d *Dispatcher) deliver(ctx context.Context, stored events.Stored, practice string) error {
	opened, err := envelope.Open(stored.Data, d.Identities...)
	if errors.Is(err, envelope.ErrNoIdentity) {
		return nil // it stays, and is reported
	}
	if err != nil {
		return err
	}
	sealed, err := envelope.Seal(opened, d.Directory.Recipient(practice))
	if err != nil {
		return err
	}
	return d.Stream.Move(ctx, stored.Sequence, events.Message{
		Subject: events.Subject(practice), ID: "assigned " + practice + " " + strconv.FormatUint(stored.Sequence, 10),
		Header: map[string]string{events.DeviceHeader: stored.Header[events.DeviceHeader]}, Data: sealed,
	})
}

// Retry sends a dead event to its practice again, still sealed.
func Retry(ctx context.Context, stream *events.Stream, stored events.Stored) error {
	return stream.Move(ctx, stored.Sequence, events.Message{
		Subject: events.Subject(stored.Header[events.PracticeHeader]), ID: "retry " + strconv.FormatUint(stored.Sequence, 10),
		Header: map[string]string{events.DeviceHeader: stored.Header[events.DeviceHeader]}, Data: stored.Data,
	})
}
