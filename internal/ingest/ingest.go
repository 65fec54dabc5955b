// Package ingest accepts device events and readings from webhooks, CSV files, the API, the dashboard and replay. It matches the patient,
// removes duplicates, evaluates each reading and stores the observation with all its effects in one transaction; an event that makes no
// observation is quarantined or recorded, so that no authenticated event is lost. Vendors' formats are in gateway, thresholds in alerts,
// and HTTP answers in routes. Rules: docs/decisions/gateway.md, docs/decisions/observations.md.
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
)

// PipelineOptions are the pipeline's dependencies.
type PipelineOptions struct {
	Adapters gateway.Adapters
	Readings *ReadingStore
	Writer   *Writer
	Devices  *devices.Engine
	// AllowDuplicates stores repeats of a webhook too; for tests of the gateway.
	AllowDuplicates bool
	// RecheckBilling checks the patient's billing again after a reading was retracted; nil without billing.
	RecheckBilling func(tx core.App, patientID string, since, now time.Time) error
	Log            *slog.Logger
}

// Pipeline accepts events from all sources.
type Pipeline struct {
	PipelineOptions
	reads      collections.ReadCache
	batchSlots chan struct{} // one slot for each batch that is being stored
}

// NewPipeline returns a pipeline.
func NewPipeline(o PipelineOptions) *Pipeline {
	return &Pipeline{PipelineOptions: o, batchSlots: make(chan struct{}, maxConcurrentBatches)}
}

// Status is the result of processing an event.
type Status string

// The statuses.
const (
	Stored      Status = "stored"
	Duplicate   Status = "duplicate"   // stored before
	Quarantined Status = "quarantined" // a person has to match it
	Processed   Status = "processed"   // a device or hub event
	Ignored     Status = "ignored"     // of a type without meaning here
	Rejected    Status = "rejected"    // it cannot be read
)

// Result is the result of one event of a request.
type Result struct {
	Event         gateway.Event // as far as it could be parsed
	Status        Status
	EventID       string
	ObservationID string // of a stored or duplicate measurement
	Reason        string // why it is quarantined
	SeenBefore    bool   // it was quarantined or rejected before
	Rejection     *fault.Error
	// OfSeveral: its request has other events, too.
	OfSeveral bool
}

// VendorRequest is an authenticated request of a vendor.
type VendorRequest struct {
	Vendor gateway.Vendor
	Body   []byte
	By     audit.Actor
	At     time.Time // time of receipt
	// Record runs in the transaction that stores an event; nil for nothing. An event without a transaction, such as some duplicates, skips it.
	Record func(tx core.App) error
}

// inTransaction runs work and then Record.
func (d VendorRequest) inTransaction(app core.App, work func(tx core.App) error) error {
	return app.RunInTransaction(func(tx core.App) error {
		if err := work(tx); err != nil || d.Record == nil {
			return err
		}
		return d.Record(tx)
	})
}

// Receive stores the events of a request in order of measurement; results keep the request's order.
// After an error some are stored: the vendor sends all again, and the stored ones are duplicates.
func (e *Pipeline) Receive(ctx context.Context, app core.App, d VendorRequest) (results []Result, err error) {
	parts, anyParsed, err := e.parseRequest(d)
	if err != nil {
		return nil, err
	}
	events := make([]gateway.Event, len(parts))
	for i, part := range parts {
		if part.rejection == nil {
			events[i] = part.event
		}
	}
	batch := e.newBatch(events, d.At)
	results = make([]Result, len(parts))
	for _, index := range batch.order {
		part := parts[index]
		d.Body = part.body
		var result Result
		if part.rejection != nil {
			result, err = e.storeRejected(app, part, d, anyParsed)
		} else {
			result, err = e.receiveEvent(ctx, app, part.event, d, batch)
		}
		if err != nil {
			return nil, err
		}
		result.Event, result.OfSeveral = part.event, part.ofSeveral
		results[index] = result
	}
	return results, batch.finish(app, nil, d.At)
}

// requestEvent is one event of a request.
type requestEvent struct {
	body      []byte
	event     gateway.Event // as far as it could be parsed
	rejection *fault.Error  // why it cannot be parsed
	ofSeveral bool
}

// parseRequest splits and parses a request. anyParsed: some of it was parsed, so its sender gets no error.
func (e *Pipeline) parseRequest(d VendorRequest) (parts []requestEvent, anyParsed bool, err error) {
	adapter := e.Adapters[d.Vendor]
	bodies := adapter.Split(d.Body)
	for _, body := range bodies {
		event, err := gateway.Parse(adapter, body, d.At)
		refusal, refused := errors.AsType[*fault.Error](err)
		if err != nil && !refused {
			return nil, false, err
		}
		anyParsed = anyParsed || !refused
		parts = append(parts, requestEvent{body, event, refusal, len(bodies) > 1})
		if len(event.RejectedValues) > 0 {
			parts = append(parts, requestEvent{body, event, fault.Validation(event.RejectedValues), len(bodies) > 1})
		}
	}
	return parts, anyParsed, nil
}

func (e *Pipeline) receiveEvent(ctx context.Context, app core.App, event gateway.Event, d VendorRequest, batch *readingBatch) (Result, error) {
	if retracted, err := e.findDiscardedPart(app, event, d); err != nil || retracted != nil {
		return Result{Status: Duplicate, EventID: event.ID()}, err
	}
	v, err := classify(e.reads.In(app), event, func(patientID string) (Outcome, error) {
		s, err := e.matchedSubmission(app, event, patientMatch{patient: patientID}, d.By, d.At)
		if err != nil {
			return Outcome{}, err
		}
		s.Arrival.IsDeferred, s.record = false, d.Record
		s.AllowDuplicates, s.NewerInBatch, s.DiscardedBefore = e.AllowDuplicates, batch.newerThan(event), e.discardedBefore(event, patientID, d)
		return e.Writer.Submit(ctx, s)
	})
	if err == nil {
		batch.recordResult(event, v.status, v.patient)
	}
	switch {
	case err != nil:
		return Result{}, err
	case v.status == Quarantined:
		result, err := e.quarantineEvent(app, event, v.reason, d)
		if err == nil && v.reason == ReasonReadingMissing { // the reading may have been stored concurrently, before this part was
			result, err = e.retryQuarantined(app, result, d.At)
		}
		return result, err
	case v.status == Processed || v.status == Ignored:
		return e.processDeviceEvent(app, event, v.status, d)
	}
	if v.outcome.CheckDevice || v.isResent(event) {
		if err := e.releaseResent(app, event, v, d); err != nil {
			return Result{}, err
		}
	}
	if v.outcome.CheckDevice {
		if err := e.Devices.CheckDevice(app, event.DeviceID, d.At); err != nil {
			e.Log.Error("device check after a reading failed; the hub check repeats it", slog.Any("error", err)) // the reading is stored; the hub check runs within a minute
		}
	}
	err = e.afterCommit(app, event, v, d)
	return Result{Status: v.status, EventID: event.ID(), ObservationID: v.outcome.Observation.ID}, err
}

// classification is the result of matching and storing an event.
type classification struct {
	status  Status
	reason  string // of a quarantined one
	patient string
	outcome Outcome
}

// classify finds the patient of an event, stores its reading with store, and returns the result. All sources that do not name the patient
// use it; store runs in the writer, in the caller's transaction, or as a dry run.
func classify(app core.App, event gateway.Event, store func(patientID string) (Outcome, error)) (v classification, err error) {
	switch {
	case !event.Type.IsKnown():
		return classification{status: Ignored}, nil
	case event.Type != gateway.MeasurementCreated:
		return classification{status: Processed}, nil
	case event.IsUnsupported():
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

// storeRejected stores an event that cannot be parsed, because its vendor stops sending it at some point, and raises the alert for its
// implausible values.
func (e *Pipeline) storeRejected(app core.App, p requestEvent, d VendorRequest, notifyStaff bool) (Result, error) {
	result := Result{Status: Rejected, Rejection: p.rejection}
	err := d.inTransaction(app, func(tx core.App) (err error) {
		result.EventID, result.SeenBefore, err = StoreEvent(tx, EventEntry{
			ID: gateway.BodyID(d.Vendor, d.Body), Status: collections.EventRejected, Reason: p.rejection.Code,
			Event: p.event, Payload: d.Body, FieldErrors: p.rejection.Fields,
			NotifyStaff: notifyStaff || p.event.Type == gateway.MeasurementCreated && needsReading(p.event.Implausible),
		}, d.By, d.At)
		if err != nil {
			return err
		}
		return e.alertIfImplausible(tx, result.EventID, p.event, d.At)
	})
	return result, err
}

// needsReading reports whether a person has to look at a rejected measurement that raises no alert.
func needsReading(i *gateway.Implausible) bool {
	return i == nil || len(i.RejectedFor) > 0 && !i.IsDangerous()
}

// quarantineEvent quarantines a measurement. One that conflicts or is of an unsupported kind alerts
// if its values are dangerous. A repeat of a closed event is a duplicate.
func (e *Pipeline) quarantineEvent(app core.App, event gateway.Event, reason string, d VendorRequest) (Result, error) {
	entry := EventEntry{ID: event.ID(), Status: collections.EventOpen, Reason: reason, Event: event, Payload: d.Body}
	if reason == ReasonConflict {
		entry.ID = gateway.BodyID(d.Vendor, d.Body) // its own key belongs to the reading it conflicts with
	}
	result := Result{Status: Quarantined, Reason: reason}
	err := d.inTransaction(app, func(tx core.App) (err error) {
		if result.EventID, result.SeenBefore, err = StoreEvent(tx, entry, d.By, d.At); err != nil || result.SeenBefore {
			return err
		}
		switch {
		case isConflict(reason, event):
			return e.alertIfImplausible(tx, result.EventID, event.AsConflicting(), d.At)
		case event.IsUnsupported():
			return e.alertIfImplausible(tx, result.EventID, event, d.At)
		}
		return announceUnmatched(tx, result.EventID, event, reason, d.At)
	})
	if err != nil || !result.SeenBefore {
		return result, err
	}
	id := result.EventID
	earlier, err := FindQuarantined(app, id)
	if err == nil && earlier.Status() != collections.EventOpen {
		result = Result{Status: Duplicate, EventID: id, ObservationID: earlier.ObservationID()}
	}
	return result, err
}

// isConflict reports whether an event is a whole reading with the time of another one and other values.
func isConflict(reason string, event gateway.Event) bool {
	return reason == ReasonConflict && event.Reading != nil && event.Part == ""
}

// processDeviceEvent stores an event without an observation and applies it to the device or hub in one transaction, so that the vendor
// sends it again if it fails.
func (e *Pipeline) processDeviceEvent(app core.App, event gateway.Event, status Status, d VendorRequest) (Result, error) {
	result := Result{Status: status, EventID: event.ID()}
	stored := collections.EventHandled
	if status == Ignored {
		stored = collections.EventIgnored
	}
	err := d.inTransaction(app, func(tx core.App) error {
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
