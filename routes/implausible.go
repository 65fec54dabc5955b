package routes

import (
	"errors"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/routes/web"
)

// askTyped is shown to a patient who typed an implausible value.
const askTyped = "Is that right? Please check what your device shows and enter it again."

// reportImplausible answers a rejected reading. If implausible values are its only fault and the
// caller may act on the patient, it first alerts the care team, because the caller may not send the
// reading again; a patient who typed it is prompted to correct it. Source:
// docs/decisions/observations.md, "Implausible values" and "Values that a patient types".
func (a *api) reportImplausible(c *web.Call, kind *vitals.Definition, body vitals.Body, envelope vitals.Envelope, refusal error) error {
	reach := func(patientID string) error { return a.authorizeIngest(c, patientID) }
	report, implausible := a.implausible(c, kind, body, envelope, refusal, reach)
	if !implausible {
		return asTypingError(c, kind, body, refusal)
	}
	if err := a.IngestPipeline.ReportImplausible(c.App, report, c.Actor(), c.Now); err != nil {
		return storageFailure(err)
	}
	if c.Caller.Role == authz.Patient {
		asked := fault.Validation(report.FieldErrors)
		asked.Detail = askTyped
		return asked
	}
	return refusal
}

// asTypingError prompts a patient to correct values that contradict each other, such as 80/120: they
// are most likely mistyped.
func asTypingError(c *web.Call, kind *vitals.Definition, body vitals.Body, refusal error) error {
	refused, isFault := errors.AsType[*fault.Error](refusal)
	if c.Caller.Role != authz.Patient || !isFault || !kind.IsIncoherent(body) {
		return refusal
	}
	asked := fault.Validation(refused.Fields)
	asked.Detail = askTyped
	return asked
}

// storageFailure makes the caller retry: no alert was stored.
func storageFailure(err error) error {
	return fault.New(fault.Unavailable, "service_unavailable", "The reading could not be stored.").Because(err)
}

// implausible returns the report to store about a rejected reading; ok is false if implausible
// values are not its only fault.
func (a *api) implausible(
	c *web.Call, kind *vitals.Definition, body vitals.Body, envelope vitals.Envelope, refusal error, reach func(patientID string) error,
) (report ingest.ImplausibleReport, ok bool) {
	refused, isFault := errors.AsType[*fault.Error](refusal)
	if !isFault {
		return report, false
	}
	reading, outside, ok := kind.ReadOutOfRange(body)
	checks := validate.NewChecks()
	var patientID string
	patientID, reading.DeviceID, reading.MeasuredAt = envelope.Read(checks, c.Now, a.MaxFuture)
	if !ok || checks.Err() != nil || reach(patientID) != nil {
		return report, false
	}
	way := string(sourceOf(c))
	if c.Caller.Client != nil {
		way = ingest.SourceClient
	}
	return ingest.ImplausibleReport{PatientID: patientID, Source: way, Reading: reading, OutOfRange: outside, FieldErrors: refused.Fields}, true
}

// confirmEvent stores an observation from an implausible event that a clinician confirms.
func (a *api) confirmEvent(c *web.Call, event *collections.GatewayEvent) error {
	type confirmBody struct {
		Notes validate.String `json:"notes"`
	}
	notes, err := web.Read(c, func(body confirmBody, checks *validate.Checks) phi.Text {
		return phi.Text(checks.Text("notes", body.Notes, validate.Required(500).Multiline()))
	})
	if err != nil {
		return err
	}
	patient, err := collections.PatientOfQuarantine(c.App, event.Id)
	if err != nil {
		return err
	}
	if err := a.authorizeEvent(c, patient); err != nil {
		return err
	}
	outcome, err := a.IngestPipeline.ConfirmImplausible(c.App, event.Id, notes, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	a.DeliveryWorker.Wake()
	return a.answerIngested(c, outcome)
}

// authorizeDiscard checks the role: an implausible event of a patient needs the permission to confirm readings, any other
// event the permission to manage the quarantine. Source: docs/decisions/roles.md, "Endpoint permissions".
func (a *api) authorizeDiscard(c *web.Call, event *collections.GatewayEvent) error {
	patient, err := collections.PatientOfQuarantine(c.App, event.Id)
	if err != nil {
		return err
	}
	needed := authz.ManageQuarantine
	if patient != "" {
		needed = authz.ConfirmImplausible
	} else if err := c.RejectEmergency(); err != nil { // emergency access needs a patient
		return err
	}
	if authz.ReachOf(c.Caller.Role, needed) == authz.None {
		return fault.New(fault.Forbidden, "permission_denied", "Your role does not allow discarding this event.")
	}
	return a.authorizeEvent(c, patient)
}

// authorizeEvent checks access to the event's patient; patient is "" for an unmatched event.
func (a *api) authorizeEvent(c *web.Call, patient string) error {
	if patient == "" {
		return nil
	}
	return a.authorizePatient(c, patient)
}
