package templates

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
)

// ApplyBody is the body that applies a template to a patient.
type ApplyBody struct {
	TemplateID validate.Integer `json:"template_id"`
	Reason     validate.String  `json:"reason"`
}

// ApplyRequest is a validated [ApplyBody].
type ApplyRequest struct {
	Number int64
	Reason phi.Text // "" for the template's name
}

func (b ApplyBody) Read(c *validate.Checks) (choice ApplyRequest) {
	if number := c.Integer("template_id", b.TemplateID, true); number != nil {
		choice.Number = *number
	}
	choice.Reason = phi.Text(c.Text("reason", b.Reason, validate.Optional(500)))
	return choice
}

// Apply gives a patient the bounds of a template, logs the change, rescores the patient and records which version was applied. A clinician
// may apply any template. Source: docs/decisions/alerts.md, "Templates".
func Apply(app core.App, patientID string, choice ApplyRequest, by audit.Actor, now time.Time) (c alerts.Configuration, err error) {
	err = triage.UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		if _, err := collections.FindPatient(tx, patientID); err != nil {
			return "", fault.OrMissing(err)
		}
		t, err := collections.FindThresholdTemplate(tx, choice.Number)
		if err != nil {
			return "", fault.OrMissing(err)
		}
		bounds, err := alerts.ParseBounds(t.Bounds())
		if err != nil {
			return "", err
		}
		reason := choice.Reason
		if reason == "" {
			reason = phi.Text(fmt.Sprintf("Template %s, version %d.", t.Name(), t.Version()))
		}
		before, err := alerts.Configured(tx, patientID)
		if err != nil {
			return "", err
		}
		_, changed, err := alerts.SetThresholds(tx, patientID, alerts.FromTemplate(bounds, reason), by, now)
		if err != nil {
			return "", err
		}
		if err := collections.StoreAppliedTemplates(tx, patientID, withApplied(before.Templates, collections.AppliedTemplate{
			ID: t.Number(), Key: t.Key(), Name: t.Name(), Version: t.Version(), At: validate.FormatInstant(now), By: by.Email,
		})); err != nil {
			return "", err
		}
		if !changed { // SetThresholds wrote no entry
			err := audit.Append(tx, audit.Entry{
				Event: audit.ThresholdUpdate, Actor: by, ResourceType: audit.ResourceThresholds, ResourceID: patientID, PatientID: patientID, Reason: reason,
			}, now)
			if err != nil {
				return "", err
			}
		}
		c, err = alerts.Configured(tx, patientID)
		return patientID, err
	})
	return c, err
}

// withApplied adds a template to those applied, the latest last, each once: the audit trail has the earlier applications.
func withApplied(list []collections.AppliedTemplate, latest collections.AppliedTemplate) []collections.AppliedTemplate {
	return append(slices.DeleteFunc(list, func(a collections.AppliedTemplate) bool { return a.ID == latest.ID }), latest)
}
