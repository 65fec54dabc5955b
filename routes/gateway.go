package routes

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/netip"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/limits"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/phi"
)

// webhookAnswer tells the gateway what became of an event. Source: docs/decisions/gateway.md, "Webhook answers".
type webhookAnswer struct {
	Status        string `json:"status"` // accepted, duplicate, quarantined or ignored
	EventID       string `json:"event_id"`
	ObservationID string `json:"observation_id,omitempty"`
	Reason        string `json:"reason,omitempty"`
}

// receiveEvent takes one event of the device gateway. Only what is signed is read, and nothing signed is lost: it is stored, known, kept
// for a person to place, or refused with the reason and kept all the same.
func (a *api) receiveEvent(c *call) error {
	if addr, err := netip.ParseAddr(c.Address); err != nil || !gateway.SourceAllowed(addr, a.GatewaySources) {
		return a.noteUnsigned(c, nil, fault.New(fault.Forbidden, "source_not_allowed", "Requests from this address are not accepted."))
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	secret, err := a.Gateway.Verify(c.Request.Header, body, c.Now)
	if err != nil {
		return a.noteUnsigned(c, body, err)
	}
	if secret == gateway.PreviousSecret {
		a.Log.Info("webhook signed with the previous secret")
	}
	event, err := a.Gateway.Parse(body, c.Now)
	if err != nil {
		return a.reject(c, event, body, err)
	}
	switch {
	case !event.Type.Known():
		return a.keep(c, observations.Kept{ID: event.ID(), Status: observations.KeptIgnored, Event: event, Payload: body}, "ignored")
	case event.Type != gateway.MeasurementCreated:
		return a.keep(c, observations.Kept{ID: event.ID(), Status: observations.KeptHandled, Event: event, Payload: body}, "accepted")
	case event.Unsupported():
		return a.quarantine(c, event.ID(), event, body, observations.ReasonUnsupportedType)
	}
	return a.receiveMeasurement(c, event, body)
}

func (a *api) receiveMeasurement(c *call, event gateway.Event, body []byte) error {
	patientID, reason, err := observations.Place(c.App, event)
	if err != nil {
		return unavailable(err)
	}
	if reason != "" {
		return a.quarantine(c, event.ID(), event, body, reason)
	}
	submission := observations.FromEvent(event, patientID, audit.Gateway(c.origin()), c.Now)
	submission.Repeatable = !a.GatewayDedup
	outcome, err := a.Writer.Submit(c.Request.Context(), submission)
	var refused *fault.Error
	switch {
	case errors.As(err, &refused) && refused.Kind != fault.Unavailable:
		return a.quarantine(c, event.ID(), event, body, observations.ReasonFor(refused))
	case err != nil:
		return unavailable(err)
	case outcome.Conflict:
		return a.quarantine(c, observations.BodyID(body), event, body, observations.ReasonConflict)
	case outcome.Duplicate:
		return c.ok(webhookAnswer{Status: "duplicate", EventID: event.ID(), ObservationID: outcome.Observation.ID})
	}
	if outcome.AttendDevice {
		if err := a.Devices.Attend(c.App, event.DeviceID, c.Now); err != nil {
			a.Log.Error("device not attended to", slog.Any("error", err)) // the reading is stored; the hub check does it within a minute
		}
	}
	return c.ok(webhookAnswer{Status: "accepted", EventID: event.ID(), ObservationID: outcome.Observation.ID})
}

// noteUnsigned leaves a trace of a request that nobody vouches for: its hash, never its content, and once an hour for each address and
// reason, with the number of those that were not recorded.
func (a *api) noteUnsigned(c *call, body []byte, refusal error) error {
	var refused *fault.Error
	if !errors.As(refusal, &refused) || (refused.Kind != fault.Unauthenticated && refused.Kind != fault.Forbidden) {
		return refusal
	}
	due := a.refusals.Note(limits.AddressKey(c.Address), refused.Code, c.Now)
	if len(due) == 0 {
		return refusal
	}
	err := c.App.RunInTransaction(func(tx core.App) error {
		trail, err := audit.NewChain(tx) // a thousand senders may be due at once, and readings wait meanwhile
		if err != nil {
			return err
		}
		for _, d := range due {
			if err := trail.Add(c.refusedEntry(d, body), c.Now); err != nil {
				return err
			}
		}
		return trail.Store()
	})
	if err != nil {
		for _, d := range due {
			a.refusals.Forget(d)
		}
	}
	return errors.Join(refusal, err)
}

func (c *call) refusedEntry(refused gateway.Refusal, body []byte) audit.Entry {
	entry := audit.Entry{
		Event: audit.WebhookRejected, Outcome: audit.SeriousFailure, Actor: audit.Anonymous(c.origin()),
		ResourceType: "GatewayEvent", ResourceID: "none", Reason: phi.Text(refused.Reason),
	}
	if refused.Since > 0 {
		entry.Changes = audit.Changes{"refused_since": {New: refused.Since}}
	}
	switch {
	case refused.Over:
		entry.Actor = audit.Anonymous(audit.Origin{Address: refused.Address})
	case body != nil:
		sum := sha256.Sum256(body)
		entry.ResourceID = "sha256:" + hex.EncodeToString(sum[:])
	}
	return entry
}

// reject refuses a signed event that cannot be read, and keeps it: the gateway will stop sending it one day.
func (a *api) reject(c *call, event gateway.Event, body []byte, refusal error) error {
	var refused *fault.Error
	if !errors.As(refusal, &refused) {
		return refusal
	}
	_, _, err := observations.Keep(c.App, observations.Kept{
		ID: observations.BodyID(body), Status: observations.KeptRejected, Reason: refused.Code,
		Event: event, Payload: body, FieldErrors: refused.Fields,
	}, audit.Gateway(c.origin()), c.Now)
	if err != nil {
		return unavailable(err)
	}
	return refusal
}

func (a *api) quarantine(c *call, id string, event gateway.Event, body []byte, reason string) error {
	id, known, err := observations.Keep(c.App, observations.Kept{ID: id, Status: observations.KeptOpen, Reason: reason, Event: event, Payload: body},
		audit.Gateway(c.origin()), c.Now)
	if err != nil {
		return unavailable(err)
	}
	if known { // it may have been dealt with since
		item, err := observations.FindItem(c.App, id)
		if err != nil {
			return unavailable(err)
		}
		if item.Status != observations.KeptOpen {
			return c.ok(webhookAnswer{Status: "duplicate", EventID: id, ObservationID: item.ObservationID})
		}
	} else if a.Watch.Rejected != nil {
		a.Watch.Rejected(reason)
	}
	return c.ok(webhookAnswer{Status: "quarantined", EventID: id, Reason: reason})
}

// keep stores an event that makes no observation, and does what it says of a device or hub: both or neither, so that the
// gateway sends again what was not done.
func (a *api) keep(c *call, kept observations.Kept, status string) error {
	var id string
	var known bool
	err := c.App.RunInTransaction(func(tx core.App) (err error) {
		id, known, err = observations.Keep(tx, kept, audit.Gateway(c.origin()), c.Now)
		if err != nil || known || kept.Status != observations.KeptHandled {
			return err
		}
		return a.Devices.Handle(tx, kept.Event, c.Now)
	})
	if err != nil {
		return unavailable(err)
	}
	if known && status != "ignored" {
		status = "duplicate"
	}
	return c.ok(webhookAnswer{Status: status, EventID: id})
}

// unavailable asks the gateway to send again: storage failed.
func unavailable(err error) error {
	return fault.New(fault.Unavailable, "service_unavailable", "The event could not be stored.").Because(err)
}

// noteRejected tells who counts that a reading or an event of the gateway was refused.
func (a *api) noteRejected(row route, err error) {
	if a.Watch.Rejected != nil && (row.who == signedByGateway || row.who == access.IngestReadings) {
		a.Watch.Rejected(translate(err).Code)
	}
}
