package routes

import (
	"fmt"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/intake"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/transmissions"
	"github.com/vigilhealth/vigil/routes/web"
)

// itemView is a quarantined device event as the contract shows it. Source: docs/decisions/gateway.md, "Webhook answers".
type itemView struct {
	ID               string       `json:"id"`
	Status           string       `json:"status"`
	Reason           string       `json:"reason"`
	EventType        *string      `json:"event_type"`
	DeviceID         *string      `json:"device_id"`
	GatewayPatientID *string      `json:"gateway_patient_id"`
	MeasurementType  *string      `json:"measurement_type"`
	Timestamp        *string      `json:"timestamp"`
	ReceivedAt       string       `json:"received_at"`
	FieldErrors      fault.Fields `json:"field_errors,omitempty"`
	ObservationID    *string      `json:"observation_id"`
	ClosedBy         *string      `json:"closed_by"`
	ClosedAt         *string      `json:"closed_at"`
}

func viewItem(e *collections.GatewayEvent) itemView {
	return itemView{
		ID: e.Id, Status: e.Status(), Reason: e.Reason(), EventType: orNull(e.EventType()),
		DeviceID: orNull(e.DeviceID()), GatewayPatientID: orNull(gateway.PatientIdentifier([]byte(e.Payload().Reveal()))),
		MeasurementType: orNull(e.MeasurementType()), Timestamp: instantOrNull(e.Timestamp()), ReceivedAt: input.FormatInstant(e.ReceivedAt()),
		FieldErrors: e.FieldErrors(), ObservationID: orNull(e.ObservationID()), ClosedBy: orNull(e.ClosedBy()), ClosedAt: instantOrNull(e.ClosedAt()),
	}
}

func (a *api) listQuarantine(c *web.Call) error {
	q := c.Query()
	p := q.Paging()
	filter := collections.GatewayEventFilter{
		Status: q.OneOf("status", intake.QuarantineStatuses...), Among: intake.QuarantineStatuses, Reason: q.Text("reason", 50), DeviceID: q.Text("device_id", 128),
	}
	between := q.Between()
	filter.From, filter.To = between.From, between.To
	if err := q.Err(); err != nil {
		return err
	}
	page, total, unreadable, err := collections.PageOfGatewayEvents(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	views := make([]itemView, len(page))
	for i, item := range page {
		views[i] = viewItem(item)
	}
	if err := c.RecordRead(audit.ObservationRead, audit.ResourceGatewayEvent, ""); err != nil {
		return err
	}
	return web.List(c, p, total, views, unreadable)
}

func (a *api) releaseEvent(c *web.Call) error {
	id, err := c.PathUUID()
	if err != nil {
		return err
	}
	if _, err := intake.Find(c.App, id); err != nil {
		return err
	}
	var body struct {
		PatientID input.String `json:"patient_id"`
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	patientID := checks.UUID("patient_id", body.PatientID, true)
	if err := checks.Err(); err != nil {
		return err
	}
	if err := a.reach(c, patientID); err != nil {
		return err
	}
	outcome, err := a.Intake.Release(c.App, id, patientID, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	a.Transmissions.Wake()
	return a.answerIngested(c, outcome)
}

func (a *api) discardEvent(c *web.Call) error {
	id, err := c.PathUUID()
	if err != nil {
		return err
	}
	if _, err := intake.Find(c.App, id); err != nil {
		return err
	}
	reason, err := reason(c)
	if err != nil {
		return err
	}
	item, err := intake.Discard(c.App, id, reason, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	return c.OK(viewItem(item))
}

// withdrawObservation marks a reading as entered in error.
func (a *api) withdrawObservation(c *web.Call) error {
	o, err := a.findObservation(c)
	if err != nil {
		return err
	}
	reason, err := reason(c)
	if err != nil {
		return err
	}
	if o, err = a.Readings.Withdraw(c.App, o.ID, reason, c.Actor(), c.Now); err != nil {
		return err
	}
	views, err := viewObservations(c, []observations.Observation{o})
	if err != nil {
		return err
	}
	return c.OK(views[0])
}

// Bounds of a healthy ingestion. Source: docs/decisions/observations.md, "Ingestion status".
const (
	longQueue     = 100
	oldJob        = 5 * time.Minute
	writerSilence = time.Minute
)

// ingestionView is how ingestion is doing.
type ingestionView struct {
	Status               string       `json:"status"` // operational, degraded or down
	QueueDepth           int          `json:"queue_depth"`
	ObservationsToday    int          `json:"observations_today"`
	ObservationsThisHour int          `json:"observations_this_hour"`
	ProcessingRate       string       `json:"processing_rate"`
	LastProcessedAt      *string      `json:"last_processed_at"`
	FHIRPipeline         pipelineView `json:"fhir_pipeline"`
}

type pipelineView struct {
	Pending          int `json:"pending"`
	Processing       int `json:"processing"`
	TransmittedToday int `json:"transmitted_today"`
	FailedToday      int `json:"failed_today"`
}

func (a *api) ingestionStatus(c *web.Call) error {
	today := collections.StartOfDay(c.Now.In(a.Zone))
	numbers, err := observations.Count(c.App, today, c.Now)
	if err != nil {
		return err
	}
	view := ingestionView{
		Status: "operational", ObservationsToday: numbers.Today, ObservationsThisHour: numbers.LastHour,
		ProcessingRate: fmt.Sprintf("%.1f/min", numbers.PerMinute), LastProcessedAt: instantOrNull(numbers.LastAt),
	}
	figures, err := transmissions.ReadFigures(c.App, today)
	if err != nil {
		return err
	}
	view.FHIRPipeline = pipelineView{figures.Pending, figures.Processing, figures.Transmitted, figures.Failed}
	oldest, err := collections.OldestPendingTransmission(c.App)
	if err != nil {
		return err
	}
	view.QueueDepth = a.Writer.QueueDepth() + figures.Pending
	switch {
	case !a.Writer.Alive(c.Now, writerSilence):
		view.Status = "down"
	case view.QueueDepth >= longQueue || !oldest.IsZero() && c.Now.Sub(oldest) > oldJob:
		view.Status = "degraded"
	}
	return c.OK(view)
}
