package routes

import (
	"fmt"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/transmissions"
)

// itemView is a kept device event as the contract shows it. Source: docs/decisions/gateway.md, "Webhook answers".
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

func viewItem(item observations.Item) itemView {
	return itemView{
		ID: item.ID, Status: string(item.Status), Reason: item.Reason, EventType: orNull(item.EventType),
		DeviceID: orNull(item.DeviceID), GatewayPatientID: orNull(item.GatewayPatientID()), MeasurementType: orNull(item.MeasurementType),
		Timestamp: instantOrNull(collections.ParseInstant(item.Timestamp)), ReceivedAt: input.FormatInstant(item.ReceivedAt),
		FieldErrors: item.FieldErrors, ObservationID: orNull(item.ObservationID), ClosedBy: orNull(item.ClosedBy),
		ClosedAt: instantOrNull(item.ClosedAt),
	}
}

func (a *api) listQuarantine(c *call) error {
	var statuses []string
	for _, status := range observations.QuarantineStatuses {
		statuses = append(statuses, string(status))
	}
	q := c.query()
	p := q.paging()
	filter := observations.QuarantineFilter{
		Status: observations.KeptStatus(q.oneOf("status", statuses...)), Reason: q.text("reason", 50), DeviceID: q.text("device_id", 128),
	}
	between := q.between()
	filter.From, filter.To = between.From, between.To
	if err := q.err(); err != nil {
		return err
	}
	page, total, unreadable, err := observations.Quarantine(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	views := make([]itemView, len(page))
	for i, item := range page {
		views[i] = viewItem(item)
	}
	if err := c.recordRead(audit.ObservationRead, "GatewayEvent", ""); err != nil {
		return err
	}
	return list(c, p, total, views, unreadable)
}

func (a *api) releaseEvent(c *call) error {
	id, err := c.pathUUID()
	if err != nil {
		return err
	}
	if _, err := observations.FindItem(c.App, id); err != nil {
		return err
	}
	var body struct {
		PatientID input.String `json:"patient_id"`
	}
	if err := c.decode(&body); err != nil {
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
	outcome, err := a.Readings.Release(c.App, a.Gateway, id, patientID, c.actor(), c.Now)
	if err != nil {
		return err
	}
	a.Transmissions.Wake()
	return a.answerIngested(c, outcome)
}

func (a *api) discardEvent(c *call) error {
	id, err := c.pathUUID()
	if err != nil {
		return err
	}
	if _, err := observations.FindItem(c.App, id); err != nil {
		return err
	}
	reason, err := c.reason()
	if err != nil {
		return err
	}
	item, err := observations.Discard(c.App, id, reason, c.actor(), c.Now)
	if err != nil {
		return err
	}
	return c.ok(viewItem(item))
}

// withdrawObservation marks a reading as entered in error.
func (a *api) withdrawObservation(c *call) error {
	o, err := a.findObservation(c)
	if err != nil {
		return err
	}
	reason, err := c.reason()
	if err != nil {
		return err
	}
	if o, err = a.Readings.Withdraw(c.App, o.ID, reason, c.actor(), c.Now); err != nil {
		return err
	}
	views, err := viewObservations(c, []observations.Observation{o})
	if err != nil {
		return err
	}
	return c.ok(views[0])
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

func (a *api) ingestionStatus(c *call) error {
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
	oldest, err := transmissions.OldestPending(c.App)
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
	return c.ok(view)
}
