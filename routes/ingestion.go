package routes

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/routes/web"
)

// ingestionRows has one row for each kind of reading and one for batches.
func ingestionRows() (rows []route) {
	for _, kind := range vitals.Definitions {
		rows = append(rows, route{
			http.MethodPost, "/ingestion/" + kind.Kind.Path() + "/", authz.IngestReadings.Or(authz.ScopeIngest), ratelimit.User,
			func(a *api, c *web.Call) error { return a.ingest(c, kind) },
		})
	}
	return append(rows, route{
		http.MethodPost, "/ingestion/batch/", authz.IngestReadings.Or(authz.ScopeIngest), ratelimit.User, (*api).ingestBatch,
	})
}

// ingest stores a reading from a user or an app, then answers 201, or 200 for a duplicate.
func (a *api) ingest(c *web.Call, kind *vitals.Definition) error {
	raw, err := c.Body()
	if err != nil {
		return err
	}
	var body vitals.Body
	if err := c.Parse(raw, &body); err != nil {
		return err
	}
	envelope, err := decodeEnvelope(c, raw)
	if err != nil {
		return err
	}
	checks := validate.NewChecks()
	line := a.readReading(c, checks, kind, body, envelope)
	if err := checks.Err(); err != nil {
		return a.reportImplausible(c, kind, body, envelope, err)
	}
	if err := a.authorizeIngest(c, line.PatientID); err != nil {
		return err
	}
	outcome, err := a.IngestPipeline.Submit(c.Request.Context(), line.PatientID, line.Reading, line.Source, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	return a.answerIngested(c, outcome)
}

// decodeEnvelope reads the members that all kinds of readings share.
func decodeEnvelope(c *web.Call, raw []byte) (vitals.Envelope, error) {
	var envelope vitals.Envelope
	if err := c.Parse(raw, &envelope); err != nil {
		return envelope, err
	}
	return envelope, identifyPatient(c, &envelope)
}

func (a *api) answerIngested(c *web.Call, outcome ingest.Outcome) error {
	if !outcome.Duplicate {
		return c.Created(viewObservation(outcome.Observation, summarizeRaisedAlerts(outcome), c.Caller.Role))
	}
	existing, err := collections.AlertsOfObservations(c.App, outcome.Observation.ID)
	if err != nil {
		return err
	}
	view := viewObservation(outcome.Observation, summarizeStoredAlerts(existing[outcome.Observation.ID]), c.Caller.Role)
	view.Add("duplicate", true)
	return c.OK(view)
}

func (a *api) listObservations(c *web.Call) (err error) {
	q, p := c.Listing()
	between := q.Between()
	filter := collections.ObservationFilter{
		PatientID: q.PatientID(), Kind: q.OneOf("observation_type", vitals.KindNames...), From: between.From, To: between.To,
		FHIRStatus:  q.OneOf("fhir_status", collections.FHIRPending, collections.FHIRProcessing, collections.FHIRTransmitted, collections.FHIRFailed),
		OldestFirst: q.Ordering("-measured_at", "measured_at") == "measured_at", Zone: a.Zone,
	}
	if err := q.Err(); err != nil {
		return err
	}
	if c.Reach == authz.Own && !confine(c, &filter.PatientID) {
		return web.RespondPage(c, p, 0, []observationView{}, 0)
	}
	if filter.CareTeamOf, err = a.careTeamFilter(c, filter.PatientID); err != nil {
		return err
	}
	page, total, err := ingest.ListObservations(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	views, err := viewObservations(c, page)
	if err != nil {
		return err
	}
	return web.RespondPage(c, p, total, views, 0)
}

// confine narrows a filter to the caller's own patient; false if nothing can match.
func confine(c *web.Call, patientID *string) bool {
	if c.Caller.PatientID == "" || (*patientID != "" && *patientID != c.Caller.PatientID) {
		return false
	}
	*patientID = c.Caller.PatientID
	return true
}

func viewObservations(c *web.Call, page []ingest.Observation) ([]observationView, error) {
	raised, err := collections.AlertsOfObservations(c.App, web.Map(page, func(o ingest.Observation) string { return o.ID })...)
	if err != nil {
		return nil, err
	}
	views := web.Map(page, func(o ingest.Observation) observationView {
		return viewObservation(o, summarizeStoredAlerts(raised[o.ID]), c.Caller.Role)
	})
	shown := distinct(page, func(o ingest.Observation) string { return o.PatientID })
	return views, c.RecordRead(audit.ObservationRead, audit.ResourceObservation, "", shown...)
}

func (a *api) readObservation(c *web.Call, o ingest.Observation) error {
	views, err := viewObservations(c, []ingest.Observation{o})
	if err != nil {
		return err
	}
	return c.OK(views[0])
}

// observation finds the observation of the path and checks that the caller may see it.
func (a *api) observation(c *web.Call) (ingest.Observation, error) {
	id, err := c.PathUUID()
	if err != nil {
		return ingest.Observation{}, err
	}
	o, err := ingest.FindObservation(c.App, id)
	if err == nil && strings.HasPrefix(c.Request.URL.Path, web.BasePath+"/fhir/") {
		err = c.ChoosePatient("patient_id", o.PatientID, true)
	}
	if err == nil && c.Reach == authz.Own && o.PatientID != c.Caller.PatientID {
		err = fault.Missing()
	}
	if err == nil {
		err = a.authorizePresentPatient(c, o.PatientID)
	}
	return o, err
}

// retractObservation marks a reading as entered in error.
func (a *api) retractObservation(c *web.Call, o ingest.Observation) error {
	reason, err := reason(c)
	if err != nil {
		return err
	}
	err = c.App.RunInTransaction(func(tx core.App) error {
		if o, err = a.ReadingStore.Retract(tx, o.ID, reason, c.Actor(), c.Now); err != nil {
			return err
		}
		return a.Billing.Recheck(tx, o.PatientID, o.Reading.MeasuredAt, c.Now)
	})
	if err != nil {
		return err
	}
	a.DeliveryWorker.Wake() // the EMR's copy must be updated
	return a.readObservation(c, o)
}

// confirmObservation confirms a suspect reading.
func (a *api) confirmObservation(c *web.Call, o ingest.Observation) error {
	confirmation, err := web.Read(c, confirmObservationBody.read)
	if err != nil {
		return err
	}
	if o, err = a.ReadingStore.ConfirmSuspect(c.App, o.ID, confirmation, c.Actor(), c.Now); err != nil {
		return err
	}
	a.DeliveryWorker.Wake()
	return a.readObservation(c, o)
}

// confirmObservationBody holds the optional reason for confirming a reading, and when it was measured.
type confirmObservationBody struct {
	Notes      validate.String `json:"notes"`
	MeasuredAt validate.String `json:"measured_at"`
}

func (b confirmObservationBody) read(c *validate.Checks) ingest.Confirmation {
	return ingest.Confirmation{Notes: confirmBody{b.Notes}.read(c), MeasuredAt: c.Instant("measured_at", b.MeasuredAt, false)}
}

// confirmBody holds the optional reason for confirming a reading.
type confirmBody struct {
	Notes validate.String `json:"notes"`
}

func (b confirmBody) read(c *validate.Checks) phi.Text {
	return phi.Text(c.Text("notes", b.Notes, validate.Optional(2000).Multiline()))
}

// Bounds of healthy ingestion. Source: docs/decisions/observations.md, "Ingestion status".
const (
	longQueue     = 100
	oldJob        = 5 * time.Minute
	writerSilence = time.Minute
)

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
	numbers, err := ingest.LoadThroughput(c.App, today, c.Now)
	if err != nil {
		return err
	}
	view := ingestionView{
		Status: "operational", ObservationsToday: numbers.Today, ObservationsThisHour: numbers.LastHour,
		ProcessingRate: fmt.Sprintf("%.1f/min", numbers.PerMinute), LastProcessedAt: instantOrNull(numbers.LastAt),
	}
	figures, err := a.EMR.Client.CountDeliveries(c.App, today)
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
	case view.QueueDepth >= longQueue || figures.Pending > 0 && !oldest.IsZero() && c.Now.Sub(oldest) > oldJob:
		view.Status = "degraded"
	}
	return c.OK(view)
}

// observationView is an observation with only the fields of its kind. Source: docs/decisions/observations.md,
// "Observation response shape".
type observationView = validate.OrderedObject

type alertDetails struct {
	Level   string `json:"level"`
	Message string `json:"message"`
}

// alertSummary holds the parts of an alert that an observation's view shows.
type alertSummary struct {
	ID             int64
	Level, Message string
	// IsQuestion marks the question whether a suspect reading is real; it ranks below the alerts about the value.
	IsQuestion bool
}

func viewObservation(o ingest.Observation, raisedAlerts []alertSummary, reader authz.Role) observationView {
	r, status := o.Reading, collections.StatusFinal
	if o.EnteredInError {
		status = collections.StatusEnteredInError
	}
	var v observationView
	v.Add("id", o.ID)
	v.Add("patient_id", o.PatientID)
	v.Add("observation_type", r.Kind)
	showValues(&v, r)
	v.Add("device_id", orNull(r.DeviceID))
	v.Add("measured_at", validate.FormatInstant(r.MeasuredAt))
	v.Add("source", o.Source)
	v.Add("origin", o.Origin)
	v.Add("review_state", o.Review)
	if o.Review != ingest.Accepted {
		v.Add("suspect_reason", orNull(o.SuspectReason))
		confirmedBy := o.ConfirmedBy
		if reader == authz.Patient && confirmedBy != alerts.System {
			confirmedBy = "" // the portal shows no names of staff: docs/decisions/roles.md, "Endpoint permissions"
		}
		v.Add("confirmed_by", orNull(confirmedBy))
		v.Add("confirmed_at", instantOrNull(o.ConfirmedAt))
	}
	v.Add("status", status)
	v.Add("fhir_status", orNull(o.FHIRStatus))
	showAlerts(&v, raisedAlerts, reader)
	if len(o.LeftOut) > 0 {
		v.Add("left_out", o.LeftOut)
	}
	v.Add("transmitted_resource_id", orNull(o.EMRResourceID))
	v.Add("created_at", validate.FormatInstant(o.CreatedAt))
	return v
}

// showValues adds the measured values, also in their other units.
func showValues(v *observationView, r vitals.Reading) {
	kind := r.Kind.Definition()
	for _, p := range kind.All {
		value := r.Value(p)
		v.Add(p.Column, value)
		for _, unit := range p.Units {
			if unit.Back != nil && value != nil {
				v.Add(unit.Field, unit.Back(*value))
			}
		}
	}
	for _, m := range kind.Qualifiers {
		if m.IsFlag() && r.Qualifier(m) != "" {
			v.Add(m.Name, r.Qualifier(m) == vitals.Yes)
			continue
		}
		v.Add(m.Name, orNull(r.Qualifier(m)))
	}
}

// showAlerts adds the most severe alert. Alerts are a clinical work list: the portal does not see them; billing and
// clients see only that alerts exist.
func showAlerts(v *observationView, raisedAlerts []alertSummary, reader authz.Role) {
	if reader == authz.Patient {
		return
	}
	var details *alertDetails
	ids, isQuestion := []int64{}, false
	for _, alert := range raisedAlerts {
		ids = append(ids, alert.ID)
		worse := details == nil || isQuestion && !alert.IsQuestion || (alert.Level == string(alerts.Critical) && details.Level != alert.Level)
		if worse && reader != authz.DataMonitor && reader != authz.Client {
			details, isQuestion = &alertDetails{Level: alert.Level, Message: alert.Message}, alert.IsQuestion
		}
	}
	v.Add("alert_triggered", len(ids) > 0)
	if details != nil {
		v.Add("alert_details", details)
	}
	v.Add("alert_ids", ids)
}

func summarizeRaisedAlerts(outcome ingest.Outcome) (list []alertSummary) {
	for _, alert := range outcome.Alerts {
		if alert.Level != string(alerts.Normal) {
			list = append(list, alertSummary{ID: collections.Number(alert.ID), Level: alert.Level, Message: alert.Message})
		}
	}
	return list
}

func summarizeStoredAlerts(existing []*collections.Alert) (list []alertSummary) {
	for _, alert := range existing {
		list = append(list, alertSummary{
			ID: alert.Number(), Level: alert.Level(), Message: alert.DisplayMessage(), IsQuestion: alert.Type() == alerts.TypeSuspectReading,
		})
	}
	return list
}
