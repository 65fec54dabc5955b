// Package intake takes in what devices measured and what they say of themselves, by whichever entrance it comes: a vendor's
// webhook, the release or the replay of an event that was set aside, a table, a caller of the API. It finds out whose a
// measurement is, hands it on to be stored, and says of each event whether it was stored, known, held for a person, handled,
// ignored or refused; what made no observation it stores as it came, so that nothing that is vouched for is lost. It refuses to
// know the words of a vendor (see gateway), what follows from a reading (see observations) and how callers are answered.
package ingest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// PipelineOptions are what the intake works with.
type PipelineOptions struct {
	Adapters gateway.Adapters
	Readings *Evaluator
	Writer   *Writer
	Devices  *devices.Engine
	// Repeatable stores repeats of a webhook too; for tests of the gateway.
	Repeatable bool
	// Recheck counts anew what was billed for a patient, after a reading was withdrawn; nil where nothing is billed.
	Recheck func(tx core.App, patientID string, since, now time.Time) error
	Log     *slog.Logger
}

// Pipeline is the one way in.
type Pipeline struct {
	PipelineOptions
	reads   collections.Reads
	batches chan struct{} // held by those that are being stored
}

// NewPipeline returns an engine.
func NewPipeline(o PipelineOptions) *Pipeline {
	return &Pipeline{PipelineOptions: o, batches: make(chan struct{}, batchesAtOnce)}
}

// Status is what became of an event.
type Status string

// The answers.
const (
	Stored  Status = "stored"
	Known   Status = "known"   // it came before
	Held    Status = "held"    // a person has to place it
	Handled Status = "handled" // of a device or a hub
	Ignored Status = "ignored" // of a type that means nothing here
	Refused Status = "refused" // it cannot be read
)

// Result is what became of one event of a delivery.
type Result struct {
	Event         gateway.Event // as far as it could be read
	Status        Status
	EventID       string
	ObservationID string // of a stored or known measurement
	Reason        string // why it is held
	Repeated      bool   // it was held, or refused, before
	Refusal       *fault.Error
}

// Delivery is what a vendor sent, verified.
type Delivery struct {
	Vendor gateway.Vendor
	Body   []byte
	By     audit.Actor
	At     time.Time // when it reached the door
}

// Receive takes the events of a delivery, in order of measurement, and says what became of each, in theirs. An error means that not all of them are stored: the vendor has to send
// it again, and finds what is stored already known.
func (e *Pipeline) Receive(ctx context.Context, app core.App, d Delivery) (results []Result, err error) {
	parts, someRead, err := e.read(d)
	if err != nil {
		return nil, err
	}
	all := e.gather(parts, d.At)
	results = make([]Result, len(parts))
	for _, place := range deliveryOrder(parts, part.measured) {
		part := parts[place]
		d.Body = part.body
		var result Result
		if part.refusal != nil {
			result, err = e.refuse(app, part, d, someRead)
		} else {
			result, err = e.receive(ctx, app, part.event, d, all)
		}
		if err != nil {
			return nil, err
		}
		result.Event = part.event
		results[place] = result
	}
	return results, all.reconsider(app, d.At)
}

// part is an event of a delivery.
type part struct {
	body    []byte
	event   gateway.Event // as far as it could be read
	refusal *fault.Error  // why it cannot be read
}

// read takes a delivery apart. someRead: some of it can be read, so that its sender will not hear that it was refused.
func (e *Pipeline) read(d Delivery) (parts []part, someRead bool, err error) {
	adapter := e.Adapters[d.Vendor]
	for _, body := range adapter.Split(d.Body) {
		event, err := adapter.Parse(body, d.At)
		refusal, refused := errors.AsType[*fault.Error](err)
		if err != nil && !refused {
			return nil, false, err
		}
		someRead = someRead || !refused
		parts = append(parts, part{body, event, refusal})
		if len(event.LeftOut) > 0 {
			parts = append(parts, part{body, event, fault.Validation(event.LeftOut)})
		}
	}
	return parts, someRead, nil
}

// refuse stores an event that cannot be read: its vendor will stop sending it one day. What is implausible in it is told.
func (e *Pipeline) refuse(app core.App, p part, d Delivery, told bool) (Result, error) {
	result := Result{Status: Refused, Refusal: p.refusal}
	err := app.RunInTransaction(func(tx core.App) (err error) {
		result.EventID, result.Repeated, err = Store(tx, Entry{
			ID: gateway.BodyID(d.Vendor, d.Body), Status: collections.EventRejected, Reason: p.refusal.Code,
			Event: p.event, Payload: d.Body, FieldErrors: p.refusal.Fields, Told: told,
		}, d.By, d.At)
		if err != nil {
			return err
		}
		return e.tellOfImplausible(tx, result.EventID, p.event, d.At)
	})
	return result, err
}

func (e *Pipeline) receive(ctx context.Context, app core.App, event gateway.Event, d Delivery, all *together) (Result, error) {
	if gone, err := e.dismissedPart(app, event, d); err != nil || gone != nil {
		return Result{Status: Known, EventID: event.ID()}, err
	}
	v, err := take(e.reads.In(app), event, func(patientID string) (Outcome, error) {
		s, err := e.placed(app, event, owner{patient: patientID}, d.By, d.At)
		if err != nil {
			return Outcome{}, err
		}
		s.Repeatable, s.Following, s.Dismissed = e.Repeatable, all.following(event), e.dismissed(event, patientID, d)
		return e.Writer.Submit(ctx, s)
	})
	if err == nil {
		all.note(event, v.status, v.patient)
	}
	switch {
	case err != nil:
		return Result{}, err
	case v.status == Held:
		result, err := e.hold(app, event, v.reason, d)
		if err == nil && v.reason == ReasonNoReading { // which may have come meanwhile, and seen nothing wait for it
			result, err = e.retry(app, result, d.At)
		}
		return result, err
	case v.status == Handled || v.status == Ignored:
		return e.handle(app, event, v.status, d)
	}
	if v.outcome.CheckDevice || v.repeats(event) {
		if err := e.decideRepeat(app, event, v, d); err != nil {
			return Result{}, err
		}
	}
	if v.outcome.CheckDevice {
		if err := e.Devices.CheckDevice(app, event.DeviceID, d.At); err != nil {
			e.Log.Error("device not attended to", slog.Any("error", err)) // the reading is stored; the hub check does it within a minute
		}
	}
	err = e.followUp(app, event, v, d)
	return Result{Status: v.status, EventID: event.ID(), ObservationID: v.outcome.Observation.ID}, err
}

// Submit takes a reading of a caller who names the patient. It is stored, known, or refused with a fault.
func (e *Pipeline) Submit(
	ctx context.Context, patientID string, r vitals.Reading, source vitals.Source, by audit.Actor, at time.Time,
) (Outcome, error) {
	return e.Writer.Submit(ctx, newSubmission(patientID, r, source, by, at))
}

// newSubmission is a reading of a caller who names the patient.
func newSubmission(patientID string, r vitals.Reading, source vitals.Source, by audit.Actor, at time.Time) Submission {
	s := Submission{PatientID: patientID, Reading: r, Source: source, By: by, ReceivedAt: at}
	if by.Type == audit.ByClient {
		s.Origin = vitals.OriginMachine
	}
	return s
}

// hold sets a measurement aside for a person. A repeat of one that was dealt with since is known.
func (e *Pipeline) hold(app core.App, event gateway.Event, reason string, d Delivery) (Result, error) {
	entry := Entry{ID: event.ID(), Status: collections.EventOpen, Reason: reason, Event: event, Payload: d.Body}
	if reason == ReasonConflict {
		entry.ID = gateway.BodyID(d.Vendor, d.Body) // the key is its rival's
	}
	id, known, err := Store(app, entry, d.By, d.At)
	result := Result{Status: Held, EventID: id, Reason: reason, Repeated: known}
	if err != nil || !known {
		return result, err
	}
	earlier, err := FindQuarantined(app, id)
	if err == nil && earlier.Status() != collections.EventOpen {
		result = Result{Status: Known, EventID: id, ObservationID: earlier.ObservationID()}
	}
	return result, err
}

// handle stores an event that makes no observation, and does what it says of a device or hub: both or neither, so that the
// vendor sends again what was not done.
func (e *Pipeline) handle(app core.App, event gateway.Event, status Status, d Delivery) (Result, error) {
	result := Result{Status: status, EventID: event.ID()}
	stored := collections.EventHandled
	if status == Ignored {
		stored = collections.EventIgnored
	}
	err := app.RunInTransaction(func(tx core.App) error {
		id, known, err := Store(tx, Entry{ID: result.EventID, Status: stored, Event: event, Payload: d.Body}, d.By, d.At)
		result.EventID = id
		switch {
		case err != nil || status == Ignored:
			return err
		case known:
			result.Status = Known
			return nil
		}
		return e.Devices.Handle(tx, event, d.At)
	})
	return result, err
}

// verdict is what an event comes to.
type verdict struct {
	status  Status
	reason  string // of a held one
	patient string
	outcome Outcome
}

// take finds the patient of an event, has its reading stored, and says what the event comes to. Every entrance that does not name
// the patient itself goes through it; store differs: with the others that wait, in a transaction of the caller's, or for show.
func take(app core.App, event gateway.Event, store func(patientID string) (Outcome, error)) (v verdict, err error) {
	switch {
	case !event.Type.Known():
		return verdict{status: Ignored}, nil
	case event.Type != gateway.MeasurementCreated:
		return verdict{status: Handled}, nil
	case event.Unsupported():
		return verdict{status: Held, reason: ReasonUnsupportedType}, nil
	}
	if v.patient, v.reason, err = Place(app, event); err != nil {
		return v, err
	}
	if v.reason != "" {
		v.status = Held
		return v, nil
	}
	v.outcome, err = store(v.patient)
	refused, isFault := errors.AsType[*fault.Error](err)
	switch {
	case isFault && refused.Kind != fault.Unavailable:
		v.status, v.reason = Held, reasonFor(refused)
	case err != nil:
		return v, err
	case v.outcome.Conflict:
		v.status, v.reason = Held, ReasonConflict
	case v.outcome.Duplicate:
		v.status = Known
	default:
		v.status = Stored
	}
	return v, nil
}

// submission is the reading of a placed measurement on its way in.
func submission(event gateway.Event, patientID string, by audit.Actor, receivedAt time.Time) Submission {
	return Submission{
		PatientID: patientID, Reading: *event.Reading, Source: vitals.SourceGateway, GatewayKey: event.Key(),
		Partial: len(event.Additions) > 0, Addition: event.Addition != "", Device: devices.EnvelopeOf(event), By: by, ReceivedAt: receivedAt,
	}
}
