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

const (
	maxReadings     = 1000
	maxReadingsBody = 2 << 20
)

// The results of a line.
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

// ingestBatch stores many readings, each by the rules of its kind's endpoint.
func (a *api) ingestBatch(c *web.Call) error {
	items, err := c.DecodeList("readings", maxReadings)
	if err != nil {
		return err
	}
	b := &readingBatch{api: a, call: c, view: readingsView{Results: make([]*lineView, len(items))}, reached: map[string]error{}}
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

// readingBatch is a batch in progress.
type readingBatch struct {
	api     *api
	call    *web.Call
	view    readingsView
	lines   []ingest.BatchReading
	places  []int // index in the request of each of lines
	reports []ingest.ImplausibleReport
	reached map[string]error // by patient: nil if the caller may act on it
	patient string           // of all lines of a portal user, who names one patient in a request
}

// read validates one line and its authorization. It returns an error only if the whole batch must fail.
func (b *readingBatch) read(index int, item jsontext.Value) error {
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
	if err := b.identifyPatient(&envelope); err != nil {
		return b.reject(index, err)
	}
	if !kind.Valid() { // without a kind the values cannot be checked; the other members can
		envelope.Read(checks, b.call.Now, b.api.MaxFuture)
		return b.reject(index, checks.Err())
	}
	line := b.api.readReading(b.call, checks, kind.Definition(), body, envelope)
	if err := checks.Err(); err != nil {
		if report, implausible := b.api.implausible(b.call, kind.Definition(), body, envelope, err, b.authorize); implausible {
			b.reports = append(b.reports, report)
		}
		return b.reject(index, err)
	}
	if err := b.authorize(line.PatientID); err != nil {
		return b.reject(index, err)
	}
	b.lines, b.places = append(b.lines, line), append(b.places, index)
	return nil
}

// identifyPatient is [identifyPatient] for a line. It refuses a second patient from the portal.
func (b *readingBatch) identifyPatient(envelope *vitals.Envelope) error {
	if err := identifyPatient(b.call, envelope); err != nil {
		return err
	}
	switch chosen := b.call.Caller.PatientID; {
	case chosen == "":
	case b.patient == "":
		b.patient = chosen
	case b.patient != chosen:
		return fault.Field("patient_id", "A batch holds the readings of one patient.")
	}
	return nil
}

func sentType(body vitals.Body) (sent validate.String) {
	if raw := body.Member("type"); raw != nil {
		_ = sent.UnmarshalJSON(raw) // never fails: a wrong type is reported by the checks
	}
	return sent
}

// authorize checks each patient once.
func (b *readingBatch) authorize(patientID string) error {
	err, isChecked := b.reached[patientID]
	if !isChecked {
		err = b.api.authorizeIngest(b.call, patientID)
		b.reached[patientID] = err
	}
	return err
}

// store stores the valid lines and sets their results. It reports implausible values last, so that later plausible
// readings count.
func (b *readingBatch) store() error {
	c := b.call
	if err := c.ChoosePatient("patient_id", b.patient, b.patient != "" || len(c.Caller.Patients) != 1); err != nil { // a refused line may have named another
		return err
	}
	answers, err := b.api.IngestPipeline.SubmitAll(c.Request.Context(), c.App, b.lines, c.Actor(), c.Now)
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
	if err := b.api.IngestPipeline.ReportAllImplausible(c.App, b.reports, c.Actor(), c.Now); err != nil {
		return storageFailure(err)
	}
	return nil
}

// defaultFields are the fields of faults that name none.
var defaultFields = map[string]string{"not_found": "patient_id", "permission_denied": "patient_id", "device_patient_mismatch": "device_id"}

// reject records why a line is rejected, or returns an error that is not the line's fault.
func (b *readingBatch) reject(index int, err error) error {
	f := web.Translate(err)
	if f.Kind == fault.Internal || f.Kind == fault.Unavailable {
		return err
	}
	line := &lineView{Index: index, Status: lineRejected, Code: f.Code, Errors: f.Fields}
	if len(line.Errors) == 0 {
		field, detail := defaultFields[f.Code], f.Detail
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
	if b.api.Observer.Rejected != nil {
		b.api.Observer.Rejected(f.Code)
	}
	return nil
}

// readReading reads one reading; use the result only if checks has no errors.
func (a *api) readReading(c *web.Call, checks *validate.Checks, kind *vitals.Definition, body vitals.Body, envelope vitals.Envelope) ingest.BatchReading {
	line := ingest.BatchReading{Reading: kind.Read(checks, body), Source: sourceOf(c)}
	line.PatientID, line.Reading.DeviceID, line.Reading.MeasuredAt = envelope.Read(checks, c.Now, a.MaxFuture)
	line.Reading.WithoutZone = envelope.WithoutZone()
	return line
}

func sourceOf(c *web.Call) vitals.Source {
	if c.Caller.Role == authz.Patient {
		return vitals.SourcePortal
	}
	return vitals.SourceAPI
}

// authorizeIngest checks that the caller may store readings of a patient.
func (a *api) authorizeIngest(c *web.Call, patientID string) error {
	if c.Caller.Role == authz.Patient && patientID != c.Caller.PatientID {
		return fault.Missing()
	}
	return a.authorizePatient(c, patientID)
}
