package routes

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/netip"
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// gatewayEventView reports the status of an event to the gateway. Source: docs/decisions/gateway.md, "Webhook answers".
type gatewayEventView struct {
	Status        string `json:"status"` // accepted, duplicate, quarantined or ignored
	EventID       string `json:"event_id"`
	ObservationID string `json:"observation_id,omitempty"`
	Reason        string `json:"reason,omitempty"`
	// LeftOut are the side values that could not be read.
	LeftOut []string `json:"left_out,omitempty"`
	// Results are those of all events, if the gateway sent several; the other members are those of the first that was not rejected.
	Results []vendorEventView `json:"results,omitempty"`
}

// webhookStatuses are the wire values of the ingest statuses.
var webhookStatuses = map[ingest.Status]string{
	ingest.Stored: "accepted", ingest.Duplicate: "duplicate", ingest.Quarantined: "quarantined", ingest.Processed: "accepted", ingest.Ignored: "ignored",
	ingest.Rejected: "rejected",
}

// vendorRows has one row for each vendor with a webhook of its own.
func vendorRows() (rows []route) {
	for _, vendor := range gateway.Vendors() {
		rows = append(rows, route{http.MethodPost, "/gateway/" + string(vendor) + "/", authz.SignedByGateway, ratelimit.Webhook, receive(vendor)})
	}
	return rows
}

// receiveEvent accepts one event of the device gateway, or several. Source: docs/decisions/gateway.md, "Several events in one delivery".
func (a *api) receiveEvent(c *web.Call) error {
	results, err := a.receiveFrom(c, gateway.Contract)
	if err != nil {
		return err
	}
	first := max(0, slices.IndexFunc(results, func(r ingest.Result) bool { return r.Rejection == nil }))
	if results[first].Rejection != nil {
		return results[first].Rejection
	}
	answer := viewResult(results[first])
	if results[0].OfSeveral {
		answer.Results, _ = viewResults(results)
		a.countRejectedEvents(results)
	}
	return c.OK(answer)
}

// deliveryAnswer reports the status of each event of a vendor's delivery. Source: docs/decisions/gateway.md, "Other
// device vendors".
type deliveryAnswer struct {
	Results []vendorEventView `json:"results"`
}

type vendorEventView struct {
	gatewayEventView
	EventType       string       `json:"event_type,omitempty"`
	MeasurementType string       `json:"measurement_type,omitempty"`
	FieldErrors     fault.Fields `json:"field_errors,omitempty"`
}

// receive serves a vendor that may send several events at once. It rejects the delivery if no event in it can be read.
func receive(vendor gateway.Vendor) handler {
	return func(a *api, c *web.Call) error {
		results, err := a.receiveFrom(c, vendor)
		if err != nil {
			return err
		}
		views, refused := viewResults(results)
		if refused == len(results) {
			return results[0].Rejection
		}
		a.countRejectedEvents(results)
		return c.OK(deliveryAnswer{views})
	}
}

func viewResults(results []ingest.Result) (views []vendorEventView, refused int) {
	views = make([]vendorEventView, len(results))
	for i, result := range results {
		views[i] = vendorEventView{
			gatewayEventView: viewResult(result), EventType: string(result.Event.Type), MeasurementType: result.Event.MeasurementType,
		}
		if result.Rejection != nil {
			refused++
			views[i].Reason, views[i].FieldErrors = result.Rejection.Code, result.Rejection.Fields
		}
	}
	return views, refused
}

func viewResult(result ingest.Result) gatewayEventView {
	return gatewayEventView{
		Status: webhookStatuses[result.Status], EventID: result.EventID, ObservationID: result.ObservationID, Reason: result.Reason,
		LeftOut: result.Event.LeftOut,
	}
}

// receiveFrom ingests a vendor's request. It reads only bodies with a valid signature and loses none of them: each
// event is stored, a duplicate, quarantined, or rejected with a reason and still kept.
func (a *api) receiveFrom(c *web.Call, vendor gateway.Vendor) ([]ingest.Result, error) {
	if addr, err := netip.ParseAddr(c.Address); err != nil || !gateway.SourceAllowed(addr, a.GatewaySources) {
		return nil, a.auditUnsigned(c, nil, fault.New(fault.Forbidden, "source_not_allowed", "Requests from this address are not accepted."))
	}
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	secret, err := a.IngestPipeline.Adapters[vendor].Verify(c.Request.Header, body, c.Now)
	if err != nil {
		return nil, a.auditUnsigned(c, body, err)
	}
	if secret == gateway.PreviousSecret {
		a.Log.Info("webhook signed with the previous secret")
	}
	results, err := a.IngestPipeline.Receive(c.Request.Context(), c.App, ingest.VendorRequest{Vendor: vendor, Body: body, By: audit.Gateway(c.Origin()), At: c.Now})
	if err != nil { // storage failed; the sender retries
		return nil, fault.New(fault.Unavailable, "service_unavailable", "The event could not be stored.").Because(err)
	}
	for _, result := range results {
		if result.Status == ingest.Quarantined && !result.SeenBefore && a.Observer.Rejected != nil {
			a.Observer.Rejected(result.Reason)
		}
	}
	return results, nil
}

// countRejectedEvents counts the rejected events of a request answered with 200; a request rejected as a whole is counted
// elsewhere.
func (a *api) countRejectedEvents(results []ingest.Result) {
	for _, result := range results {
		if result.Rejection != nil && !result.SeenBefore && a.Observer.Rejected != nil {
			a.Observer.Rejected(result.Rejection.Code)
		}
	}
}

// auditUnsigned records a request without a valid signature: the hash of its body, never the content, once an hour per
// address and reason, with the number of requests since the last record.
func (a *api) auditUnsigned(c *web.Call, body []byte, refusal error) error {
	refused, isFault := errors.AsType[*fault.Error](refusal)
	if !isFault || (refused.Kind != fault.Unauthenticated && refused.Kind != fault.Forbidden) {
		return refusal
	}
	due := a.rejectionLog.Note(ratelimit.AddressKey(c.Address), refused.Code, c.Now)
	if len(due) == 0 {
		return refusal
	}
	err := c.App.RunInTransaction(func(tx core.App) error {
		trail, err := audit.NewChain(tx) // one chain for all: a thousand senders may be due at once, and readings wait for this transaction
		if err != nil {
			return err
		}
		for _, d := range due {
			if err := trail.Add(refusedEntry(c, d, body), c.Now); err != nil {
				return err
			}
		}
		return trail.Store()
	})
	if err != nil {
		for _, d := range due {
			a.rejectionLog.Unrecord(d)
		}
	}
	return errors.Join(refusal, err)
}

func refusedEntry(c *web.Call, refused gateway.Rejection, body []byte) audit.Entry {
	entry := audit.Entry{
		Event: audit.WebhookRejected, Outcome: audit.SeriousFailure, Actor: audit.Anonymous(c.Origin()),
		ResourceType: audit.ResourceGatewayEvent, ResourceID: "none", Reason: phi.Text(refused.Reason),
	}
	if refused.Since > 0 {
		entry.Changes = audit.Changes{"refused_since": {New: refused.Since}}
	}
	switch {
	case refused.WindowEnded:
		entry.Actor = audit.Anonymous(audit.Origin{Address: refused.Address})
	case body != nil:
		sum := sha256.Sum256(body)
		entry.ResourceID = "sha256:" + hex.EncodeToString(sum[:])
	}
	return entry
}

// countRejectedRequest counts a rejected reading or gateway event.
func (a *api) countRejectedRequest(row web.Route, err error) {
	if a.Observer.Rejected != nil && (row.Permission == authz.SignedByGateway || row.Permission == authz.IngestReadings) {
		a.Observer.Rejected(web.Translate(err).Code)
	}
}

// quarantinedEventView is a quarantined device event. Source: docs/decisions/gateway.md, "Webhook answers".
type quarantinedEventView struct {
	ID               string       `json:"id"`
	Status           string       `json:"status"`
	Reason           string       `json:"reason"`
	EventType        *string      `json:"event_type"`
	DeviceID         *string      `json:"device_id"`
	GatewayPatientID *string      `json:"gateway_patient_id"`
	MeasurementType  *string      `json:"measurement_type"`
	Timestamp        *string      `json:"timestamp"`
	ReceivedAt       string       `json:"received_at"`
	Source           string       `json:"source"`
	PatientID        *string      `json:"patient_id"`
	Implausible      bool         `json:"implausible"`
	FieldErrors      fault.Fields `json:"field_errors,omitempty"`
	ObservationID    *string      `json:"observation_id"`
	ClosedBy         *string      `json:"closed_by"`
	ClosedAt         *string      `json:"closed_at"`
}

// viewItems renders events, and the patient where an alert was raised about the event.
func viewItems(app core.App, page []*collections.GatewayEvent) ([]quarantinedEventView, error) {
	patients, err := collections.PatientsOfQuarantine(app, web.Map(page, func(e *collections.GatewayEvent) string { return e.Id })...)
	return web.Map(page, func(e *collections.GatewayEvent) quarantinedEventView {
		view := viewItem(e)
		view.PatientID = orNull(patients[e.Id])
		return view
	}), err
}

func viewItem(e *collections.GatewayEvent) quarantinedEventView {
	return quarantinedEventView{
		ID: e.Id, Status: e.Status(), Reason: e.Reason(), EventType: orNull(e.EventType()),
		DeviceID: orNull(e.DeviceID()), GatewayPatientID: orNull(gateway.PatientIdentifier([]byte(e.Payload().Reveal()))),
		MeasurementType: orNull(e.MeasurementType()), Timestamp: instantOrNull(e.Timestamp()), ReceivedAt: validate.FormatInstant(e.ReceivedAt()),
		Source: ingest.EventSource(e), Implausible: e.Implausible(),
		FieldErrors: e.FieldErrors(), ObservationID: orNull(e.ObservationID()), ClosedBy: orNull(e.ClosedBy()), ClosedAt: instantOrNull(e.ClosedAt()),
	}
}

func (a *api) listQuarantine(c *web.Call) error {
	q, p := c.Listing()
	between := q.Between()
	filter := collections.GatewayEventFilter{
		Status: q.OneOf("status", ingest.QuarantineStatuses...), Statuses: ingest.QuarantineStatuses,
		Reason: q.Text("reason", 50), DeviceID: q.Text("device_id", 128),
		From: between.From, To: between.To,
	}
	if err := q.Err(); err != nil {
		return err
	}
	page, total, unreadable, err := collections.PageOfGatewayEvents(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.ObservationRead, audit.ResourceGatewayEvent, ""); err != nil {
		return err
	}
	views, err := viewItems(c.App, page)
	if err != nil {
		return err
	}
	return web.RespondPage(c, p, total, views, unreadable)
}

func (a *api) releaseEvent(c *web.Call, event *collections.GatewayEvent) error {
	type releaseBody struct {
		PatientID validate.String `json:"patient_id"`
	}
	patientID, err := web.Read(c, func(body releaseBody, checks *validate.Checks) string {
		return checks.UUID("patient_id", body.PatientID, true)
	})
	if err != nil {
		return err
	}
	if err := a.authorizePatient(c, patientID); err != nil {
		return err
	}
	outcome, err := a.IngestPipeline.Release(c.App, event.Id, patientID, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	if outcome.Observation.ID == "" { // its values are quarantined until confirmed
		return show(c, c.OK, viewItems)(ingest.FindQuarantined(c.App, event.Id))
	}
	a.DeliveryWorker.Wake()
	return a.answerIngested(c, outcome)
}

func (a *api) discardEvent(c *web.Call, event *collections.GatewayEvent) error {
	if err := a.authorizeDiscard(c, event); err != nil {
		return err
	}
	return change(c, event.Id, reason, a.IngestPipeline.Discard, show(c, c.OK, viewItems))
}
