package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/limits"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// ingestionRows are a row for each kind of reading.
func ingestionRows() (rows []route) {
	for _, kind := range vitals.Definitions {
		rows = append(rows, route{
			http.MethodPost, "/ingestion/" + kind.Kind.Path() + "/", access.IngestReadings, limits.User,
			func(a *api, c *call) error { return a.ingest(c, kind) },
		})
	}
	return rows
}

// ingest takes a reading that a person or an app sends, and answers once it is stored: 201, or 200 for one known before.
func (a *api) ingest(c *call, kind *vitals.Definition) error {
	raw, err := c.body()
	if err != nil {
		return err
	}
	var body vitals.Body
	if err := c.parse(raw, &body); err != nil {
		return err
	}
	envelope, err := decodeEnvelope(c, raw)
	if err != nil {
		return err
	}
	checks := input.NewChecks()
	reading := kind.Read(checks, body)
	var patientID string
	patientID, reading.DeviceID, reading.MeasuredAt = envelope.Read(checks, c.Now, a.MaxFuture)
	if err := checks.Err(); err != nil {
		return err
	}
	source := vitals.SourceAPI
	if c.Caller.Role == access.Patient {
		source = vitals.SourcePortal
		if patientID != c.Caller.PatientID {
			return fault.Missing()
		}
	}
	if err := a.reach(c, patientID); err != nil {
		return err
	}
	outcome, err := a.Writer.Submit(c.Request.Context(), observations.Submission{
		PatientID: patientID, Reading: reading, Source: source, By: c.actor(), ReceivedAt: c.Now,
	})
	if err != nil {
		return err
	}
	return a.answerIngested(c, outcome)
}

// decodeEnvelope reads what all readings share. A portal user may leave the patient out: it is always the own one.
func decodeEnvelope(c *call, raw []byte) (vitals.Envelope, error) {
	var envelope vitals.Envelope
	if err := c.parse(raw, &envelope); err != nil {
		return envelope, err
	}
	if c.Caller.Role == access.Patient && !envelope.PatientID.Given() && (!envelope.PatientID.Sent() || envelope.PatientID.Null()) {
		if c.Caller.PatientID == "" {
			return envelope, fault.Missing()
		}
		envelope.PatientID = input.Of(c.Caller.PatientID)
	}
	return envelope, nil
}

func (a *api) answerIngested(c *call, outcome observations.Outcome) error {
	if !outcome.Duplicate {
		return c.created(viewObservation(outcome.Observation, raisedBy(outcome), c.Caller.Role))
	}
	known, err := alerts.OfObservations(c.App, outcome.Observation.ID)
	if err != nil {
		return err
	}
	view := viewObservation(outcome.Observation, raisedFrom(known[outcome.Observation.ID]), c.Caller.Role)
	view.Add("duplicate", true)
	return c.ok(view)
}

func (a *api) listObservations(c *call) error {
	q := c.query()
	p := q.paging()
	filter := observations.Filter{
		PatientID: q.patientID(), Kind: q.oneOf("observation_type", vitals.KindNames...),
		FHIRStatus:  q.oneOf("fhir_status", collections.FHIRPending, collections.FHIRProcessing, collections.FHIRTransmitted, collections.FHIRFailed),
		OldestFirst: q.ordering("-measured_at", "measured_at") == "measured_at", Zone: q.zone,
	}
	between := q.between()
	filter.From, filter.To = between.From, between.To
	if err := q.err(); err != nil {
		return err
	}
	if c.Scope == access.Own && !confine(c, &filter.PatientID) {
		return list(c, p, 0, []observationView{}, 0)
	}
	var err error
	if filter.CareTeamOf, err = a.team(c, filter.PatientID); err != nil {
		return err
	}
	page, total, err := observations.List(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	views, err := viewObservations(c, page)
	if err != nil {
		return err
	}
	return list(c, p, total, views, 0)
}

// confine narrows a filter to the caller's own patient; false when nothing can match.
func confine(c *call, patientID *string) bool {
	if c.Caller.PatientID == "" || (*patientID != "" && *patientID != c.Caller.PatientID) {
		return false
	}
	*patientID = c.Caller.PatientID
	return true
}

func viewObservations(c *call, page []observations.Observation) ([]observationView, error) {
	ids, patients := make([]string, len(page)), map[string]bool{}
	for i, o := range page {
		ids[i], patients[o.PatientID] = o.ID, true
	}
	raised, err := alerts.OfObservations(c.App, ids...)
	if err != nil {
		return nil, err
	}
	views := make([]observationView, len(page))
	for i, o := range page {
		views[i] = viewObservation(o, raisedFrom(raised[o.ID]), c.Caller.Role)
	}
	return views, c.recordRead(audit.ObservationRead, "Observation", "", sortedKeys(patients)...)
}

func (a *api) readObservation(c *call) error {
	o, err := a.findObservation(c)
	if err != nil {
		return err
	}
	views, err := viewObservations(c, []observations.Observation{o})
	if err != nil {
		return err
	}
	return c.ok(views[0])
}

// findObservation finds the observation of the path, if the caller may see it.
func (a *api) findObservation(c *call) (observations.Observation, error) {
	id, err := c.pathUUID()
	if err != nil {
		return observations.Observation{}, err
	}
	o, err := observations.Find(c.App, id)
	if err == nil && c.Scope == access.Own && o.PatientID != c.Caller.PatientID {
		err = fault.Missing()
	}
	if err == nil {
		err = a.reachPresent(c, o.PatientID)
	}
	return o, err
}
