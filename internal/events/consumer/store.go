package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/events/envelope"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
)

// storeOrBury stores an event, with tries while it fails. It becomes a dead event if it cannot be opened, or failed too often while the
// database accepted other writes; an outage of the database is not the event's fault.
func (c *Consumer) storeOrBury(ctx context.Context, app core.App, e *event) error {
	opened, err := envelope.Open(e.message.Data(), c.Identities...)
	if err != nil {
		return c.bury(ctx, e, err)
	}
	for failures := 0; ; {
		if err = c.store(ctx, app, e, opened); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if c.inFlight.advance(app, c.Stream.Name()) == nil {
			failures++
		}
		c.Log.Warn("consumer could not store an event; its device waits", slog.Uint64("sequence", e.sequence), slog.Int("failures", failures), slog.Any("error", err))
		if failures >= MaxTries {
			return c.bury(ctx, e, err)
		}
		c.wait(ctx, c.Backoff(max(failures, 1)))
	}
}

// store hands an event to ingest. A panic is the event's failure, because it would kill the service again after each restart.
func (c *Consumer) store(ctx context.Context, app core.App, e *event, opened envelope.Envelope) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("ingest panicked with a %T", cause) // the value may hold the event
		}
	}()
	results, err := c.Receive(ctx, app, ingest.VendorRequest{
		Vendor: gateway.Vendor(opened.Vendor), Body: opened.Body, By: audit.Gateway(audit.Origin{Address: opened.FromAddress}), At: opened.ReceivedAt,
		Record: func(tx core.App) error {
			return collections.AdvanceEventPosition(tx, c.Stream.Name(), c.inFlight.positionAfter(e))
		},
	})
	if err != nil {
		return err
	}
	c.Received(results)
	return nil
}

// bury publishes an event, still sealed, as a dead event. While that fails, its device waits.
func (c *Consumer) bury(ctx context.Context, e *event, cause error) error {
	reason := events.ReasonFailed
	if errors.Is(cause, envelope.ErrNoIdentity) {
		reason = events.ReasonNoIdentity
	}
	header := map[string]string{
		events.DeviceHeader: e.message.Headers().Get(events.DeviceHeader), events.PracticeHeader: c.Practice, events.ReasonHeader: reason,
	}
	id := "dead " + c.Practice + " " + strconv.FormatUint(e.sequence, 10)
	for try := 1; ; try++ {
		err := c.Stream.Publish(ctx, events.Message{Subject: events.Dead, ID: id, Header: header, Data: e.message.Data()})
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.Log.Error("consumer could not publish a dead event; its device waits", slog.Uint64("sequence", e.sequence), slog.Any("error", err))
		c.wait(ctx, c.Backoff(min(try, MaxTries)))
	}
	c.Log.Error("an event could not be stored: see vigil events dead list", slog.Uint64("sequence", e.sequence), slog.String("reason", reason), slog.Any("error", cause))
	return nil
}
