// Package consumer reads a practice's events from the stream and hands each to the same ingest as a webhook. It keeps the order of each device,
// records its position in the transaction of the reading, and acknowledges after the commit, so that no kill loses or doubles an event. Rules:
// docs/decisions/events.md, "In the practice".
package consumer

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"filippo.io/age"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/ingest"
)

const (
	// MaxTries is after how many failed tries an event becomes a dead event.
	MaxTries = 10
	// maxDevices bounds the devices with events in work.
	maxDevices = 64
	// keepAlive is the interval of the reports that events are still in work.
	keepAlive = 20 * time.Second
	// maxBackoff bounds the wait between two tries.
	maxBackoff = 30 * time.Second
)

// Options are the consumer's dependencies.
type Options struct {
	Stream     *events.Stream
	Practice   string
	Identities []age.Identity
	// Replay is how far before its stored position the consumer starts.
	Replay time.Duration
	// Epoch is the lease's epoch; 0 without a lease. Held returns an error if the lease is not held any more; it is called between commit and
	// acknowledgement.
	Epoch func() uint64
	Held  func() error
	// Receive is the ingest; see [ingest.Pipeline.Receive].
	Receive func(ctx context.Context, app core.App, r ingest.VendorRequest) ([]ingest.Result, error)
	// Received is called with the results of an event.
	Received func([]ingest.Result)
	// Backoff is the wait after a failed try, from 1; nil for seconds that double.
	Backoff func(try int) time.Duration
	Log     *slog.Logger
}

// Consumer reads the events of one practice.
type Consumer struct {
	Options
	lock     sync.Mutex
	devices  map[string][]*event // waiting events by device; a device in the map has a goroutine
	inFlight *inFlight
	slots    chan struct{}
	work     sync.WaitGroup
}

// event is a delivered message.
type event struct {
	message  jetstream.Msg
	sequence uint64
	at       time.Time // when the stream stored it
}

// New returns a consumer.
func New(o Options) *Consumer {
	if o.Backoff == nil {
		o.Backoff = func(try int) time.Duration { return min(time.Second<<(min(try, 6)-1), maxBackoff) }
	}
	return &Consumer{Options: o, devices: map[string][]*event{}, inFlight: newInFlight(), slots: make(chan struct{}, maxDevices)}
}

// Run stores events until ctx ends. After a failure it starts again from the stored position.
func (c *Consumer) Run(ctx context.Context, app core.App) {
	for try := 1; ctx.Err() == nil; try++ {
		err := c.read(ctx, app)
		if ctx.Err() != nil {
			return
		}
		c.Log.Warn("consumer stopped; it starts again from its stored position", slog.Any("error", err))
		c.wait(ctx, c.Backoff(min(try, MaxTries)))
	}
}

func (c *Consumer) wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// read delivers events to their devices until the connection or the lease is lost.
func (c *Consumer) read(ctx context.Context, app core.App) error {
	c.inFlight.reset()
	position, err := collections.FindEventPosition(app, c.Stream.Name())
	if err != nil {
		return err
	}
	from := position.PublishedAt
	if !from.IsZero() {
		from = from.Add(-c.Replay)
	}
	consumer, err := c.Stream.Consumer(ctx, c.Practice, c.Epoch(), from)
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(maxDevices))
	if err != nil {
		return fmt.Errorf("read the consumer: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer c.work.Wait()
	defer stop(nil)
	context.AfterFunc(ctx, messages.Stop)
	c.work.Go(func() { c.extend(ctx) })
	for {
		message, err := messages.Next()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return err
		}
		c.deliver(ctx, app, message, stop)
	}
}

// deliver queues a message behind the earlier ones of its device.
func (c *Consumer) deliver(ctx context.Context, app core.App, message jetstream.Msg, stop context.CancelCauseFunc) {
	meta, err := message.Metadata()
	if err != nil { // not from a stream
		c.Log.Error("consumer received a message without a position; it is ignored", slog.Any("error", err))
		return
	}
	e := &event{message, meta.Sequence.Stream, meta.Timestamp}
	if !c.inFlight.start(e) {
		return // delivered twice, and still in work
	}
	device := message.Headers().Get(events.DeviceHeader)
	c.lock.Lock()
	defer c.lock.Unlock()
	waiting, isBusy := c.devices[device]
	c.devices[device] = append(waiting, e)
	if !isBusy {
		c.work.Go(func() { c.storeDevice(ctx, app, device, stop) })
	}
}

// storeDevice stores a device's events in order. A device with a failing event waits, others continue.
func (c *Consumer) storeDevice(ctx context.Context, app core.App, device string, stop context.CancelCauseFunc) {
	for {
		c.lock.Lock()
		waiting := c.devices[device]
		if len(waiting) == 0 {
			delete(c.devices, device)
			c.lock.Unlock()
			return
		}
		e := waiting[0]
		c.devices[device] = waiting[1:]
		c.lock.Unlock()
		if err := c.finish(ctx, app, e); err != nil {
			stop(err)
			c.lock.Lock()
			for _, left := range append([]*event{e}, c.devices[device]...) {
				c.inFlight.end(left)
			}
			delete(c.devices, device)
			c.lock.Unlock()
			return
		}
		c.inFlight.end(e)
	}
}

// finish stores an event, or makes it a dead event, and acknowledges it. An error means that it was not acknowledged.
func (c *Consumer) finish(ctx context.Context, app core.App, e *event) error {
	if err := c.storeOrBury(ctx, app, e); err != nil {
		return err
	}
	if err := c.Held(); err != nil {
		return fmt.Errorf("the lease is not held after the commit: %w", err)
	}
	if err := e.message.Ack(); err != nil { // delivered again, it is a duplicate
		return fmt.Errorf("acknowledge an event: %w", err)
	}
	return nil
}

// extend reports to the server that events are in work.
func (c *Consumer) extend(ctx context.Context) {
	ticks := time.NewTicker(keepAlive)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			for _, e := range c.inFlight.all() {
				_ = e.message.InProgress() // without it the event is delivered again, and recognized
			}
		}
	}
}
