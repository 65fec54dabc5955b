package observations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
)

// Replayed says what became of the events that a replay looked at.
type Replayed struct {
	Stored  int // became observations
	Known   int // were stored meanwhile in another way
	Handled int // of devices and hubs, readable now
	Waiting int // could not be placed or read this time either
}

// ReplayOptions are what a replay needs.
type ReplayOptions struct {
	Parser gateway.Parser
	// Handle does what an event of a device or hub means; nil leaves those waiting.
	Handle func(tx core.App, event gateway.Event, now time.Time) error
	Clock  func() time.Time
	// Progress is told how many of how many were looked at.
	Progress func(done, total int)
}

// Replay tries every open and rejected event again, after something was put right: a patient enrolled, a device assigned, a
// mapping mended. Oldest first, each in a transaction of its own, so that a running service goes on beside it and the run
// can be interrupted. Each counts as of its own receipt: a time that lay in the future then
// is still wrong.
func (e *Engine) Replay(ctx context.Context, app core.App, r ReplayOptions) (done Replayed, err error) {
	var ids []string
	err = app.DB().Select("id").From(collections.GatewayEvents).Where(dbx.In("status", string(KeptOpen), string(KeptRejected))).
		OrderBy("received_at", "id").Column(&ids)
	if err != nil {
		return done, fmt.Errorf("list events that wait: %w", err)
	}
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return done, fmt.Errorf("replay was interrupted: %w", err)
		}
		err := app.RunInTransaction(func(tx core.App) error { return e.replayOne(tx, id, r, &done) })
		if collections.IsUnreadable(err) {
			done.Waiting++ // for its key; the others go on
			err = nil
		}
		if err != nil {
			return done, fmt.Errorf("replay event %s: %w", id, err)
		}
		r.Progress(i+1, len(ids))
	}
	return done, nil
}

func (e *Engine) replayOne(tx core.App, id string, r ReplayOptions, done *Replayed) error {
	now := r.Clock()
	item, err := FindItem(tx, id)
	if err != nil {
		return err
	}
	if item.waits() != nil {
		return nil //nolint:nilerr // somebody was faster
	}
	event, err := r.Parser.Parse([]byte(item.payload.Reveal()), item.ReceivedAt)
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		done.Waiting++
		return item.wait(tx, KeptRejected, refused.Code, refused.Fields)
	}
	switch {
	case err != nil:
		return err
	case event.Type != gateway.MeasurementCreated && r.Handle == nil:
		done.Waiting++
		return nil
	case event.Type != gateway.MeasurementCreated:
		done.Handled++
		if err := r.Handle(tx, event, now); err != nil {
			return err
		}
		return item.close(tx, closing{Status: KeptHandled}, audit.System(), now)
	case event.Unsupported():
		done.Waiting++
		return item.wait(tx, KeptOpen, ReasonUnsupportedType, nil)
	}
	patientID, reason, err := Place(tx, event)
	if err != nil {
		return err
	}
	if reason != "" {
		done.Waiting++
		return item.wait(tx, KeptOpen, reason, nil)
	}
	outcome, err := e.Ingest(tx, FromEvent(event, patientID, audit.System(), now), now)
	refused, isFault := errors.AsType[*fault.Error](err)
	switch {
	case isFault:
		done.Waiting++
		return item.wait(tx, KeptOpen, ReasonFor(refused), nil)
	case err != nil:
		return err
	case outcome.Conflict:
		done.Waiting++
		return item.wait(tx, KeptOpen, ReasonConflict, nil)
	case outcome.Duplicate:
		done.Known++
	default:
		done.Stored++
	}
	return item.close(tx, closing{Status: KeptReleased, ObservationID: outcome.Observation.ID, PatientID: patientID}, audit.System(), now)
}

// wait keeps the event where it is, with the reason that holds now.
func (i Item) wait(tx core.App, status KeptStatus, reason string, fields fault.Fields) error {
	if i.Status == status && i.Reason == reason {
		return nil
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("encode field errors: %w", err)
	}
	_, err = tx.DB().Update(collections.GatewayEvents,
		dbx.Params{"status": string(status), "reason": reason, "field_errors": string(raw)}, dbx.HashExp{"id": i.ID}).Execute()
	if err != nil {
		return fmt.Errorf("note why the event waits: %w", err)
	}
	return nil
}
