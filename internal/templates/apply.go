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

// ApplyBody is the body that gives a patient a template.
type ApplyBody struct {
	TemplateID validate.Integer `json:"template_id"`
	Reason     validate.String  `json:"reason"`
}

// Choice is a body that was found valid.
type Choice struct {
	Number int64
	Reason phi.Text // "" for the template's name
}

// Read checks a body.
func (b ApplyBody) Read(c *validate.Checks) (choice Choice) {
	if number := c.Integer("template_id", b.TemplateID, true); number != nil {
		choice.Number = *number
	}
	choice.Reason = phi.Text(c.Text("reason", b.Reason, validate.Optional(500)))
	return choice
}

// Apply gives a patient the bounds of a template: they are logged as any change of thresholds, the patient is ranked anew, and it is noted
// which version of which template it was. A clinician may apply any, whatever is proposed. Source: docs/decisions/alerts.md, "Templates".
func Apply(app core.App, patientID string, choice Choice, by audit.Actor, now time.Time) (c alerts.Configuration, err error) {
	err = triage.Change(app, now, func(tx core.App) (string, error) {
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
		if err := collections.StoreAppliedTemplates(tx, patientID, given(before.Templates, collections.AppliedTemplate{
			ID: t.Number(), Key: t.Key(), Name: t.Name(), Version: t.Version(), At: validate.FormatInstant(now), By: by.Email,
		})); err != nil {
			return "", err
		}
		if !changed { // it was not noted yet that somebody gave it
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

// given adds a template to those a patient was given, the latest last, each once: that it was given before is in the audit trail.
func given(list []collections.AppliedTemplate, latest collections.AppliedTemplate) []collections.AppliedTemplate {
	return append(slices.DeleteFunc(list, func(a collections.AppliedTemplate) bool { return a.ID == latest.ID }), latest)
}
