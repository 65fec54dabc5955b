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

// reportImplausible answers a reading that was refused, as the contract has it. Where nothing is wrong with it but values that no device should
// report, about a patient the caller may act on, the patient's people are told of them first: the caller may not send them again.
// Source: docs/decisions/observations.md, "Implausible values".
func (a *api) reportImplausible(c *web.Call, kind *vitals.Definition, body vitals.Body, envelope vitals.Envelope, refusal error) error {
	reach := func(patientID string) error { return a.mayIngest(c, patientID) }
	report, implausible := a.implausible(c, kind, body, envelope, refusal, reach)
	if !implausible {
		return refusal
	}
	if err := a.Intake.Report(c.App, report, c.Actor(), c.Now); err != nil {
		return notReported(err)
	}
	return refusal
}

// notReported: the caller has to try again, since nobody was told.
func notReported(err error) error {
	return fault.New(fault.Unavailable, "service_unavailable", "The reading could not be stored.").Because(err)
}

// implausible is what is to be told of a reading that was refused, if there is anything.
func (a *api) implausible(
	c *web.Call, kind *vitals.Definition, body vitals.Body, envelope vitals.Envelope, refusal error, reach func(patientID string) error,
) (report ingest.Report, ok bool) {
	refused, isFault := errors.AsType[*fault.Error](refusal)
	if !isFault {
		return report, false
	}
	reading, outside, ok := kind.ReadOutside(body)
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
	return ingest.Report{PatientID: patientID, Source: way, Reading: reading, Outside: outside, Refusal: refused.Fields}, true
}

// confirmEvent makes an observation of a measurement whose values somebody vouches for.
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
	if err := a.reachEvent(c, patient); err != nil {
		return err
	}
	outcome, err := a.Intake.Confirm(c.App, event.Id, notes, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	a.Transmissions.Wake()
	return a.answerIngested(c, outcome)
}

// mayDiscard: whoever decides about a patient's readings decides about an implausible one, whoever places events about any other.
// Source: docs/decisions/roles.md, "Endpoint permissions".
func (a *api) mayDiscard(c *web.Call, event *collections.GatewayEvent) error {
	patient, err := collections.PatientOfQuarantine(c.App, event.Id)
	if err != nil {
		return err
	}
	needed := authz.ManageQuarantine
	if patient != "" {
		needed = authz.ConfirmImplausible
	} else if err := c.RefuseEmergency(); err != nil { // nobody's reading is no emergency
		return err
	}
	if authz.Reach(c.Caller.Role, needed) == authz.None {
		return fault.New(fault.Forbidden, "permission_denied", "Your role may not discard this event.")
	}
	return a.reachEvent(c, patient)
}

// reachEvent refuses an event of a patient of other colleagues; patient is "" for one that is nobody's yet.
func (a *api) reachEvent(c *web.Call, patient string) error {
	if patient == "" {
		return nil
	}
	return a.reach(c, patient)
}
