package routes

import (
	"encoding/json/jsontext"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/routes/web"
)

// The largest batch. Source: docs/decisions/observations.md, "Batches".
const (
	maxReadings     = 1000
	maxReadingsBody = 2 << 20
)

// What became of a line.
const (
	lineAccepted  = "accepted"
	lineDuplicate = "duplicate"
	lineRejected  = "rejected"
)

type readingsView struct {
	Accepted   int         `json:"accepted"`
	Duplicates int         `json:"duplicates"`
	Rejected   int         `json:"rejected"`
	Results    []*lineView `json:"results"`
}

type lineView struct {
	Index  int          `json:"index"`
	Status string       `json:"status"`
	ID     string       `json:"id,omitempty"`
	Code   string       `json:"code,omitempty"`
	Errors fault.Fields `json:"errors,omitempty"`
}

// ingestBatch takes many readings, each as the endpoint of its kind does.
func (a *api) ingestBatch(c *web.Call) error {
	items, err := c.DecodeList("readings", maxReadings)
	if err != nil {
		return err
	}
	b := &batch{api: a, call: c, view: readingsView{Results: make([]*lineView, len(items))}, reached: map[string]error{}}
	for i, item := range items {
		if err := b.read(i, item); err != nil {
			return err
		}
	}
	if err := b.store(); err != nil {
		return err
	}
	return c.OK(b.view)
}

// batch is a batch on its way in.
type batch struct {
	api     *api
	call    *web.Call
	view    readingsView
	lines   []ingest.Line
	places  []int // of the lines in what was sent
	reports []ingest.Report
	reached map[string]error // whether the caller may act on a patient
}

// read reads one line and looks at who sends it; an error is none of the line's.
func (b *batch) read(index int, item jsontext.Value) error {
	var body vitals.Body
	var envelope vitals.Envelope
	if err := validate.DecodeObject(item, &body); err != nil {
		return b.reject(index, err)
	}
	if err := validate.DecodeMember(item, &envelope); err != nil {
		return b.reject(index, err)
	}
	checks := validate.NewChecks()
	kind := vitals.Kind(checks.Text("type", sentType(body), validate.Required(0).OneOf(vitals.KindNames...)))
	if err := ownPatient(b.call, &envelope); err != nil {
		return b.reject(index, err)
	}
	if !kind.Valid() { // the values of nothing cannot be judged, the rest can
		envelope.Read(checks, b.call.Now, b.api.MaxFuture)
		return b.reject(index, checks.Err())
	}
	line := b.api.readReading(b.call, checks, kind.Definition(), body, envelope)
	if err := checks.Err(); err != nil {
		if report, implausible := b.api.implausible(b.call, kind.Definition(), body, envelope, err, b.reach); implausible {
			b.reports = append(b.reports, report)
		}
		return b.reject(index, err)
	}
	if err := b.reach(line.PatientID); err != nil {
		return b.reject(index, err)
	}
	b.lines, b.places = append(b.lines, line), append(b.places, index)
	return nil
}

func sentType(body vitals.Body) (sent validate.String) {
	if raw := body.Member("type"); raw != nil {
		_ = sent.UnmarshalJSON(raw) // never fails: a wrong type is kept for the checks
	}
	return sent
}

// reach asks once for each patient.
func (b *batch) reach(patientID string) error {
	err, asked := b.reached[patientID]
	if !asked {
		err = b.api.mayIngest(b.call, patientID)
		b.reached[patientID] = err
	}
	return err
}

// store stores the lines that can be, and says what became of them. What is implausible is told last: what was measured since speaks for itself.
func (b *batch) store() error {
	c := b.call
	answers, err := b.api.Intake.SubmitAll(c.Request.Context(), c.App, b.lines, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	for i, answer := range answers {
		line := &lineView{Index: b.places[i], Status: lineAccepted, ID: answer.Outcome.Observation.ID}
		switch {
		case answer.Err != nil:
			if err := b.reject(line.Index, answer.Err); err != nil {
				return err
			}
			continue
		case answer.Outcome.Duplicate:
			line.Status = lineDuplicate
			b.view.Duplicates++
		default:
			b.view.Accepted++
		}
		b.view.Results[line.Index] = line
	}
	if err := b.api.Intake.ReportAll(c.App, b.reports, c.Actor(), c.Now); err != nil {
		return notReported(err)
	}
	return nil
}

// lineFields are what a fault is about that names no field.
var lineFields = map[string]string{"not_found": "patient_id", "permission_denied": "patient_id", "device_patient_mismatch": "device_id"}

// reject notes why a line is not taken, or returns what is no fault of the line.
func (b *batch) reject(index int, err error) error {
	f := web.Translate(err)
	if f.Kind == fault.Internal || f.Kind == fault.Unavailable {
		return err
	}
	line := &lineView{Index: index, Status: lineRejected, Code: f.Code, Errors: f.Fields}
	if len(line.Errors) == 0 {
		field, detail := lineFields[f.Code], f.Detail
		if field == "" {
			field = fault.NonField
		}
		if f.Code == "parse_error" {
			detail = "This is not a valid JSON object."
		}
		line.Errors = fault.Fields{field: {detail}}
	}
	b.view.Rejected++
	b.view.Results[index] = line
	if b.api.Watch.Rejected != nil {
		b.api.Watch.Rejected(f.Code)
	}
	return nil
}

// readReading reads what a caller sends of one reading; it is to be used only when checks have nothing to complain about.
func (a *api) readReading(c *web.Call, checks *validate.Checks, kind *vitals.Definition, body vitals.Body, envelope vitals.Envelope) ingest.Line {
	line := ingest.Line{Reading: kind.Read(checks, body), Source: sourceOf(c)}
	line.PatientID, line.Reading.DeviceID, line.Reading.MeasuredAt = envelope.Read(checks, c.Now, a.MaxFuture)
	return line
}

func sourceOf(c *web.Call) vitals.Source {
	if c.Caller.Role == authz.Patient {
		return vitals.SourcePortal
	}
	return vitals.SourceAPI
}

// mayIngest refuses a patient whom the caller may not store readings of.
func (a *api) mayIngest(c *web.Call, patientID string) error {
	if c.Caller.Role == authz.Patient && patientID != c.Caller.PatientID {
		return fault.Missing()
	}
	return a.reach(c, patientID)
}
