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
	Adapters  gateway.Adapters
	Evaluator *Evaluator
	Writer    *Writer
	Devices   *devices.Engine
	// Repeatable stores repeats of a webhook too; for tests of the gateway.
	AllowDuplicates bool
	// Recheck counts anew what was billed for a patient, after a reading was withdrawn; nil where nothing is billed.
	RecheckBilling func(tx core.App, patientID string, since, now time.Time) error
	Log            *slog.Logger
}

// Pipeline is the one way in.
type Pipeline struct {
	PipelineOptions
	reads      collections.Reads
	batchSlots chan struct{} // held by those that are being stored
}

// NewPipeline returns an engine.
func NewPipeline(o PipelineOptions) *Pipeline {
	return &Pipeline{PipelineOptions: o, batchSlots: make(chan struct{}, maxConcurrentBatches)}
}

// Status is what became of an event.
type Status string

// The answers.
const (
	Stored      Status = "stored"
	Duplicate   Status = "known"   // it came before
	Quarantined Status = "held"    // a person has to place it
	Processed   Status = "handled" // of a device or a hub
	Ignored     Status = "ignored" // of a type that means nothing here
	Rejected    Status = "refused" // it cannot be read
)

// Result is what became of one event of a delivery.
type Result struct {
	Event         gateway.Event // as far as it could be read
	Status        Status
	EventID       string
	ObservationID string // of a stored or known measurement
	Reason        string // why it is held
	SeenBefore    bool   // it was held, or refused, before
	Rejection     *fault.Error
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
	parts, anyParsed, err := e.parseDelivery(d)
	if err != nil {
		return nil, err
	}
	all := e.newDeliveryBatch(parts, d.At)
	results = make([]Result, len(parts))
	for _, index := range deliveryOrder(parts, deliveryEvent.measurement) {
		part := parts[index]
		d.Body = part.body
		var result Result
		if part.rejection != nil {
			result, err = e.storeRejected(app, part, d, anyParsed)
		} else {
			result, err = e.receiveEvent(ctx, app, part.event, d, all)
		}
		if err != nil {
			return nil, err
		}
		result.Event = part.event
		results[index] = result
	}
	return results, all.reopenSuperseded(app, d.At)
}

// deliveryEvent is an event of a delivery.
type deliveryEvent struct {
	body      []byte
	event     gateway.Event // as far as it could be read
	rejection *fault.Error  // why it cannot be read
}

// parseDelivery takes a delivery apart. someRead: some of it can be read, so that its sender will not hear that it was refused.
func (e *Pipeline) parseDelivery(d Delivery) (parts []deliveryEvent, anyParsed bool, err error) {
	adapter := e.Adapters[d.Vendor]
	for _, body := range adapter.Split(d.Body) {
		event, err := adapter.Parse(body, d.At)
		refusal, refused := errors.AsType[*fault.Error](err)
		if err != nil && !refused {
			return nil, false, err
		}
		anyParsed = anyParsed || !refused
		parts = append(parts, deliveryEvent{body, event, refusal})
		if len(event.LeftOut) > 0 {
			parts = append(parts, deliveryEvent{body, event, fault.Validation(event.LeftOut)})
		}
	}
	return parts, anyParsed, nil
}

// storeRejected stores an event that cannot be read: its vendor will stop sending it one day. What is implausible in it is told.
func (e *Pipeline) storeRejected(app core.App, p deliveryEvent, d Delivery, notifyStaff bool) (Result, error) {
	result := Result{Status: Rejected, Rejection: p.rejection}
	err := app.RunInTransaction(func(tx core.App) (err error) {
		result.EventID, result.SeenBefore, err = StoreEvent(tx, EventEntry{
			ID: gateway.BodyID(d.Vendor, d.Body), Status: collections.EventRejected, Reason: p.rejection.Code,
			Event: p.event, Payload: d.Body, FieldErrors: p.rejection.Fields, NotifyStaff: notifyStaff,
		}, d.By, d.At)
		if err != nil {
			return err
		}
		return e.alertIfImplausible(tx, result.EventID, p.event, d.At)
	})
	return result, err
}

func (e *Pipeline) receiveEvent(ctx context.Context, app core.App, event gateway.Event, d Delivery, all *deliveryBatch) (Result, error) {
	if retracted, err := e.findDiscardedPart(app, event, d); err != nil || retracted != nil {
		return Result{Status: Duplicate, EventID: event.ID()}, err
	}
	v, err := classify(e.reads.In(app), event, func(patientID string) (Outcome, error) {
		s, err := e.matchedSubmission(app, event, patientMatch{patient: patientID}, d.By, d.At)
		if err != nil {
			return Outcome{}, err
		}
		s.AllowDuplicates, s.NewerInBatch, s.DiscardedBefore = e.AllowDuplicates, all.newerThan(event), e.discardedBefore(event, patientID, d)
		return e.Writer.Submit(ctx, s)
	})
	if err == nil {
		all.recordResult(event, v.status, v.patient)
	}
	switch {
	case err != nil:
		return Result{}, err
	case v.status == Quarantined:
		result, err := e.quarantineEvent(app, event, v.reason, d)
		if err == nil && v.reason == ReasonNoReadingYet { // which may have come meanwhile, and seen nothing wait for it
			result, err = e.retryQuarantined(app, result, d.At)
		}
		return result, err
	case v.status == Processed || v.status == Ignored:
		return e.processDeviceEvent(app, event, v.status, d)
	}
	if v.outcome.CheckDevice || v.isRedelivery(event) {
		if err := e.reconcileRedelivery(app, event, v, d); err != nil {
			return Result{}, err
		}
	}
	if v.outcome.CheckDevice {
		if err := e.Devices.CheckDevice(app, event.DeviceID, d.At); err != nil {
			e.Log.Error("device not attended to", slog.Any("error", err)) // the reading is stored; the hub check does it within a minute
		}
	}
	err = e.afterCommit(app, event, v, d)
	return Result{Status: v.status, EventID: event.ID(), ObservationID: v.outcome.Observation.ID}, err
}

// Submit takes a reading of a caller who names the patient. It is stored, known, or refused with a fault.
func (e *Pipeline) Submit(
	ctx context.Context, patientID string, r vitals.Reading, source vitals.Source, by audit.Actor, at time.Time,
) (Outcome, error) {
	return e.Writer.Submit(ctx, callerSubmission(patientID, r, source, by, at))
}

// callerSubmission is a reading of a caller who names the patient.
func callerSubmission(patientID string, r vitals.Reading, source vitals.Source, by audit.Actor, at time.Time) Submission {
	s := Submission{PatientID: patientID, Reading: r, Source: source, By: by, ReceivedAt: at}
	if by.Type == audit.ByClient {
		s.Origin = vitals.OriginMachine
	}
	return s
}

// quarantineEvent sets a measurement aside for a person. A repeat of one that was dealt with since is known.
func (e *Pipeline) quarantineEvent(app core.App, event gateway.Event, reason string, d Delivery) (Result, error) {
	entry := EventEntry{ID: event.ID(), Status: collections.EventOpen, Reason: reason, Event: event, Payload: d.Body}
	if reason == ReasonConflict {
		entry.ID = gateway.BodyID(d.Vendor, d.Body) // the key is its rival's
	}
	id, duplicate, err := StoreEvent(app, entry, d.By, d.At)
	result := Result{Status: Quarantined, EventID: id, Reason: reason, SeenBefore: duplicate}
	if err != nil || !duplicate {
		return result, err
	}
	earlier, err := FindQuarantined(app, id)
	if err == nil && earlier.Status() != collections.EventOpen {
		result = Result{Status: Duplicate, EventID: id, ObservationID: earlier.ObservationID()}
	}
	return result, err
}

// processDeviceEvent stores an event that makes no observation, and does what it says of a device or hub: both or neither, so that the
// vendor sends again what was not done.
func (e *Pipeline) processDeviceEvent(app core.App, event gateway.Event, status Status, d Delivery) (Result, error) {
	result := Result{Status: status, EventID: event.ID()}
	stored := collections.EventHandled
	if status == Ignored {
		stored = collections.EventIgnored
	}
	err := app.RunInTransaction(func(tx core.App) error {
		id, duplicate, err := StoreEvent(tx, EventEntry{ID: result.EventID, Status: stored, Event: event, Payload: d.Body}, d.By, d.At)
		result.EventID = id
		switch {
		case err != nil || status == Ignored:
			return err
		case duplicate:
			result.Status = Duplicate
			return nil
		}
		return e.Devices.Handle(tx, event, d.At)
	})
	return result, err
}

// classification is what an event comes to.
type classification struct {
	status  Status
	reason  string // of a held one
	patient string
	outcome Outcome
}

// classify finds the patient of an event, has its reading stored, and says what the event comes to. Every entrance that does not name
// the patient itself goes through it; store differs: with the others that wait, in a transaction of the caller's, or for show.
func classify(app core.App, event gateway.Event, store func(patientID string) (Outcome, error)) (v classification, err error) {
	switch {
	case !event.Type.Known():
		return classification{status: Ignored}, nil
	case event.Type != gateway.MeasurementCreated:
		return classification{status: Processed}, nil
	case event.Unsupported():
		return classification{status: Quarantined, reason: ReasonUnsupportedType}, nil
	}
	if v.patient, v.reason, err = MatchPatient(app, event); err != nil {
		return v, err
	}
	if v.reason != "" {
		v.status = Quarantined
		return v, nil
	}
	v.outcome, err = store(v.patient)
	refused, isFault := errors.AsType[*fault.Error](err)
	switch {
	case isFault && refused.Kind != fault.Unavailable:
		v.status, v.reason = Quarantined, quarantineReason(refused)
	case err != nil:
		return v, err
	case v.outcome.Conflict:
		v.status, v.reason = Quarantined, ReasonConflict
	case v.outcome.Duplicate:
		v.status = Duplicate
	default:
		v.status = Stored
	}
	return v, nil
}

// gatewaySubmission is the reading of a placed measurement on its way in.
func gatewaySubmission(event gateway.Event, patientID string, by audit.Actor, receivedAt time.Time) Submission {
	return Submission{
		PatientID: patientID, Reading: *event.Reading, Source: vitals.SourceGateway, GatewayKey: event.Key(),
		Partial: len(event.Additions) > 0, Addition: event.Addition != "", Device: devices.EnvelopeOf(event), By: by, ReceivedAt: receivedAt,
	}
}
