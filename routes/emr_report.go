package routes

import (
	"net/http"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// sendReportBody selects the report to send to the EMR: of a month, or about an escalation; by default of the current month.
type sendReportBody struct {
	Month        validate.String  `json:"month"`
	EscalationID validate.Integer `json:"escalation_id"`
}

// reportChoice is what a [sendReportBody] selects.
type reportChoice struct {
	month        billing.Span
	escalationID int64 // 0 for a month
}

func (a *api) readReportChoice(body sendReportBody, checks *validate.Checks, now time.Time) (chosen reportChoice) {
	id := checks.Integer("escalation_id", body.EscalationID, false)
	text := checks.Text("month", body.Month, validate.Optional(7).Filled())
	switch {
	case text == "":
		text = a.Billing.Day(now)[:7]
	case id != nil:
		checks.Reject("month", "Must not be combined with escalation_id.")
	}
	var ok bool
	if chosen.month, ok = billing.MonthSpan(text); !ok {
		checks.Reject("month", "Must be a month, YYYY-MM.")
	} else if from, _ := a.Billing.TimeRange(chosen.month); from.After(now) {
		checks.Reject("month", "Must not be in the future.")
	}
	if id != nil {
		if chosen.escalationID = *id; *id < 1 {
			checks.Reject("escalation_id", "Must be the id of an escalation.")
		}
	}
	return chosen
}

// sendReport sends a report to the EMR as a document. It answers 200 if the EMR already has the
// current version, else 202. Source: docs/decisions/transmissions.md, "Documents".
func (a *api) sendReport(c *web.Call, patient *collections.Patient) error {
	chosen, err := web.ReadOptional(c, func(body sendReportBody, checks *validate.Checks) reportChoice {
		return a.readReportChoice(body, checks, c.Now)
	})
	if err != nil {
		return err
	}
	document, err := a.chosenReport(c, patient, chosen)
	if err != nil {
		return err
	}
	if !a.EMR.Client.Configured() {
		return fault.State("emr_not_configured", "EMR is not configured.")
	}
	id, isDelivered, err := a.DeliveryWorker.SendDocument(c.App, document, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if isDelivered {
		status = http.StatusOK
	}
	found, err := collections.FindTransmission(c.App, id)
	return show(c, func(view any) error { return c.JSON(status, view) }, withPatientNames(viewTransmission))(found, err)
}

func (a *api) chosenReport(c *web.Call, patient *collections.Patient, chosen reportChoice) (emr.Document, error) {
	if chosen.escalationID == 0 {
		from, _ := a.Billing.TimeRange(chosen.month)
		return emr.MonthDocument(patient.Id, from.In(a.Zone)), nil
	}
	e, err := escalations.Find(c.App, chosen.escalationID)
	if err == nil && e.PatientID() != patient.Id {
		err = fault.Missing()
	}
	if err != nil {
		return emr.Document{}, err
	}
	histories, err := escalations.Histories(c.App, e)
	if err != nil {
		return emr.Document{}, err
	}
	newest := slices.MaxFunc(histories[e.Id], func(a, b escalations.Event) int { return a.At.Compare(b.At) })
	return emr.EscalationDocument(e, newest.At, a.Zone, c.Now), nil
}

// retryTransmission queues a failed delivery again.
func (a *api) retryTransmission(c *web.Call) error {
	id := c.Request.PathValue("id")
	found, _, err := emr.FindDelivery(c.App, id)
	if err != nil {
		return err
	}
	if err := a.authorizePresentPatient(c, found.PatientID()); err != nil {
		return err
	}
	if err := a.DeliveryWorker.Retry(c.App, id, c.Actor(), c.Now); err != nil {
		return err
	}
	return a.readTransmission(c)
}
