package routes

import (
	"cmp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

type transmissionView struct {
	blockedDeliveryView

	ID               string      `json:"id"`
	ObservationID    *string     `json:"observation_id"`
	PatientID        string      `json:"patient_id"`
	PatientName      string      `json:"patient_name"`
	ObservationType  *string     `json:"observation_type"`
	Form             string      `json:"form"`
	Status           string      `json:"status"`
	ErrorMessage     *string     `json:"error_message"`
	ErrorCode        *string     `json:"error_code"`
	GivenUp          bool        `json:"given_up"`
	Remedy           *remedyView `json:"remedy"`
	AttemptCount     int         `json:"attempt_count"`
	MaxAttempts      int         `json:"max_attempts"`
	FirstAttemptedAt *string     `json:"first_attempted_at"`
	LastAttemptedAt  *string     `json:"last_attempted_at"`
	NextRetryAt      *string     `json:"next_retry_at"`
	CreatedAt        string      `json:"created_at"`
}

func viewTransmission(t *collections.Transmission, names map[string]patients.Name) transmissionView {
	return transmissionView{
		blockedDeliveryView: viewHeldDelivery(t),
		ID:                  t.Id, ObservationID: orNull(t.ReadingID()), PatientID: t.PatientID(), PatientName: names[t.PatientID()].FullName(),
		ObservationType: orNull(t.ObservationType()), Form: cmp.Or(t.Form(), "reading"), Status: t.Status(), ErrorMessage: orNull(t.ErrorMessage()), ErrorCode: orNull(t.ErrorCode()),
		GivenUp: t.IsDeadLetter(), Remedy: remedyOf(t),
		AttemptCount: t.AttemptCount(), MaxAttempts: emr.MaxAttempts, FirstAttemptedAt: instantOrNull(t.FirstAttemptedAt()),
		LastAttemptedAt: instantOrNull(t.LastAttemptedAt()), NextRetryAt: instantOrNull(t.NextRetryAt()), CreatedAt: validate.FormatInstant(t.CreatedAt()),
	}
}

// transmissionDetail is a delivery with all its requests to the EMR, oldest first.
type transmissionDetail struct {
	transmissionView
	Attempts    []attemptView `json:"attempts"`
	Diagnostics *string       `json:"diagnostics"`
}

type attemptView struct {
	StartedAt  string  `json:"started_at"`
	DurationMS int64   `json:"duration_ms"`
	Status     *int    `json:"status"`
	RequestID  string  `json:"request_id"`
	ErrorCode  *string `json:"error_code"`
}

func (a *api) readTransmission(c *web.Call) error {
	found, ledger, err := emr.FindDelivery(c.App, c.Request.PathValue("id"))
	if err != nil {
		return err
	}
	if err := a.authorizePresentPatient(c, found.PatientID()); err != nil {
		return err
	}
	views, err := withPatientNames(viewTransmission)(c.App, []*collections.Transmission{found})
	if err != nil {
		return err
	}
	words, err := emrDiagnostics(c, found)
	if err != nil {
		return err
	}
	return c.Respond(transmissionDetail{views[0], web.Map(ledger, viewAttempt), words},
		c.RecordRead(audit.ObservationRead, audit.ResourceTransmission, found.Id, found.PatientID()))
}

func viewAttempt(attempt collections.TransmissionAttempt) attemptView {
	return attemptView{
		StartedAt: validate.FormatInstant(collections.ParseInstant(attempt.StartedAt)), DurationMS: attempt.DurationMS,
		Status: attempt.StatusCode, RequestID: attempt.RequestID, ErrorCode: orNull(attempt.ErrorCode),
	}
}

type queuedView struct {
	ObservationID  string `json:"observation_id"`
	FHIRStatus     string `json:"fhir_status"`
	TransformedAt  string `json:"transformed_at,omitempty"`
	TransmissionID string `json:"transmission_id,omitempty"`
	Message        string `json:"message"`
}

func (a *api) transformObservation(c *web.Call, o ingest.Observation) error {
	if err := a.DeliveryWorker.Transform(c.App, o.ID, c.Actor(), c.Now); err != nil {
		return err
	}
	return c.OK(queuedView{
		ObservationID: o.ID, FHIRStatus: collections.FHIRPending, TransformedAt: validate.FormatInstant(c.Now),
		Message: "Observation transformed to FHIR and queued for transmission.",
	})
}

func (a *api) transmitObservation(c *web.Call, o ingest.Observation) error {
	delivery, err := a.DeliveryWorker.Deliver(c.App, o.ID, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	view := queuedView{ObservationID: o.ID, FHIRStatus: delivery.FHIRStatus, TransmissionID: delivery.TransmissionID, Message: "Observation is being transmitted to the EMR."}
	if delivery.FHIRStatus == collections.FHIRTransmitted {
		view.Message = "Observation has just been transmitted to the EMR."
	}
	return c.OK(view)
}

func (a *api) listTransmissions(c *web.Call) (err error) {
	q, p := c.Listing()
	between := q.Between()
	filter := collections.TransmissionFilter{
		PatientID: q.PatientID(), From: between.From, To: between.To, DeadLetter: q.Boolean("given_up"),
		ErrorCode: q.OneOf("error_code", emr.ErrorCodes()...),
		Status:    q.OneOf("status", collections.FHIRPending, collections.FHIRProcessing, collections.FHIRTransmitted, collections.FHIRFailed),
	}
	filter.CorrectionDue = q.OneOf("correction_due", "true") != ""
	if filter.CareTeamOf, err = a.careTeamFilterAfter(c, q, filter.PatientID); err != nil {
		return err
	}
	page, total, err := collections.PageOfTransmissions(c.App, filter, p.Offset(), p.Size)
	return list(c, p, audit.ResourceTransmission, withPatientNames(viewTransmission))(web.Map(page, collections.AsTransmission), total, err)
}

// processedView is the result of one synchronous round. Source: docs/decisions/transmissions.md, "Process pending".
type processedView struct {
	Processed int                  `json:"processed"`
	Succeeded int                  `json:"succeeded"`
	Failed    int                  `json:"failed"`
	Skipped   int                  `json:"skipped"`
	Details   processedDetailsView `json:"details"`
}

type processedDetailsView struct {
	Transformed        int                     `json:"transformed"`
	Transmitted        int                     `json:"transmitted"`
	TransmissionErrors []transmissionErrorView `json:"transmission_errors"`
}

type transmissionErrorView struct {
	ObservationID *string `json:"observation_id"`
	Error         string  `json:"error"`
	RetryAt       *string `json:"retry_at"`
}

func (a *api) processPending(c *web.Call) error {
	transformed, err := a.DeliveryWorker.RetryTransforms(c.Request.Context(), c.App, a.ProcessPendingLimit, c.Now)
	if err != nil {
		return err
	}
	round, err := a.DeliveryWorker.SendDue(c.Request.Context(), c.App, a.ProcessPendingLimit)
	if err != nil {
		return err
	}
	view := processedView{
		Processed: round.Succeeded + round.Failed, Succeeded: round.Succeeded, Failed: round.Failed, Skipped: round.Skipped,
		Details: processedDetailsView{Transformed: transformed, Transmitted: round.Succeeded, TransmissionErrors: []transmissionErrorView{}},
	}
	for _, failure := range round.Failures {
		view.Details.TransmissionErrors = append(view.Details.TransmissionErrors,
			transmissionErrorView{orNull(failure.ObservationID), failure.ErrorMessage, instantOrNull(failure.RetryAt)})
	}
	return c.OK(view)
}

// requeueBody selects the dead letters to requeue: since a time, and by the filters of their list.
type requeueBody struct {
	Since     validate.String  `json:"since"`
	DateTo    validate.String  `json:"date_to"`
	ErrorCode validate.String  `json:"error_code"`
	PatientID validate.String  `json:"patient_id"`
	DryRun    validate.Boolean `json:"dry_run"`
}

type requeuedView struct {
	Requeued int  `json:"requeued"`
	DryRun   bool `json:"dry_run"`
}

// requeueTransmissions requeues dead letters. Source: docs/decisions/transmissions.md, "Requeue".
func (a *api) requeueTransmissions(c *web.Call, body requeueBody) error {
	checks := validate.NewChecks()
	filter := emr.DeadLetterFilter{
		ErrorCode: checks.Text("error_code", body.ErrorCode, validate.Optional(40).Filled().OneOf(emr.ErrorCodes()...)),
		PatientID: checks.UUID("patient_id", body.PatientID, false),
	}
	var ok bool
	if since := checks.Text("since", body.Since, validate.Required(40)); since != "" {
		if filter.From, ok = emr.ParseSince(since, a.Zone, c.Now); !ok {
			checks.Reject("since", "Must be a date, an ISO 8601 date-time or a duration such as 36h.")
		}
	}
	if to := checks.Text("date_to", body.DateTo, validate.Optional(40).Filled()); to != "" {
		if filter.To, ok = web.Edge(to, a.Zone, true); !ok {
			checks.Reject("date_to", web.MsgEdge)
		} else if filter.From.After(filter.To) {
			checks.Reject("since", "Must not be after date_to.")
		}
	}
	dry := checks.Boolean("dry_run", body.DryRun, false)
	if err := checks.Err(); err != nil {
		return err
	}
	if dry != nil && *dry {
		counted, err := emr.CountRequeueable(c.App, filter)
		return c.Respond(requeuedView{counted, true}, err)
	}
	requeued, err := emr.Requeue(c.Request.Context(), c.App, filter, c.Actor(), c.Now)
	if requeued > 0 {
		a.DeliveryWorker.Wake()
	}
	return c.Respond(requeuedView{Requeued: requeued}, err)
}

// remedyView describes how to fix a failed delivery.
type remedyView struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

func remedyOf(t *collections.Transmission) *remedyView {
	if t.Status() != collections.FHIRFailed {
		return nil
	}
	remedy, ok := emr.RemedyFor(t.ErrorCode(), t.ErrorMessage(), t.IsDeadLetter())
	if !ok {
		return nil
	}
	return &remedyView{remedy.Code, remedy.Text}
}

// emrDiagnostics returns the EMR's error text, for roles that may requeue. The text may name the patient, so each read
// is recorded. Source: docs/decisions/transmissions.md, "EMR diagnostics".
func emrDiagnostics(c *web.Call, t *collections.Transmission) (*string, error) {
	if authz.ReachOf(c.Caller.Role, authz.RequeueTransmissions) != authz.All || t.ErrorCode() == "" {
		return nil, nil
	}
	if err := collections.Readable(t.ProxyRecord()); err != nil {
		return nil, err
	}
	words := t.Diagnostics()
	if words == "" {
		return nil, nil
	}
	return &words, c.RecordRead(audit.EMRDiagnosticsRead, audit.ResourceTransmission, t.Id, t.PatientID())
}
