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
	"github.com/vigilhealth/vigil/internal/vitals"
)

// ApplyBody is the body that applies a template to a patient.
type ApplyBody struct {
	TemplateID validate.Integer `json:"template_id"`
	Reason     validate.String  `json:"reason"`
	Loosen     validate.Boolean `json:"loosen"`
}

// ApplyRequest is a validated [ApplyBody].
type ApplyRequest struct {
	Number int64
	Reason phi.Text // "" for the template's name
	// Loosen: the caller was prompted and wants looser bounds than a person set.
	Loosen bool
}

func (b ApplyBody) Read(c *validate.Checks) (choice ApplyRequest) {
	if number := c.Integer("template_id", b.TemplateID, true); number != nil {
		choice.Number = *number
	}
	choice.Reason = phi.Text(c.Text("reason", b.Reason, validate.Optional(500)))
	if loosen := c.Boolean("loosen", b.Loosen, false); loosen != nil {
		choice.Loosen = *loosen
	}
	return choice
}

// Apply gives a patient the bounds of a template, logs the change, rescores the patient and records which version was applied. A clinician
// may apply any template. A template applied before that would now loosen a bound that a person set is a conflict, unless the caller wants
// that. Source: docs/decisions/alerts.md, "Templates".
func Apply(app core.App, patientID string, choice ApplyRequest, by audit.Actor, now time.Time) (alerts.Configuration, error) {
	return changeByTemplate(app, patientID, choice.Number, now, func(tx core.App, p *collections.Patient, t *collections.ThresholdTemplate) error {
		bounds, err := alerts.ParseBounds(t.Bounds())
		if err != nil {
			return err
		}
		reason := choice.Reason
		if reason == "" {
			reason = phi.Text(fmt.Sprintf("Template %s, version %d.", t.Name(), t.Version()))
		}
		before, err := alerts.Configured(tx, patientID)
		if err != nil {
			return err
		}
		if err := askToLoosen(tx, patientID, t.Number(), bounds, before.Templates, choice.Loosen); err != nil {
			return err
		}
		_, changed, err := alerts.SetThresholds(tx, patientID, alerts.FromTemplate(bounds, reason), by, now)
		if err != nil {
			return err
		}
		if err := collections.StoreAppliedTemplates(tx, patientID, withApplied(before.Templates, collections.AppliedTemplate{
			ID: t.Number(), Key: t.Key(), Name: t.Name(), Version: t.Version(), At: validate.FormatInstant(now), By: by.Email,
			Bounds: bounds,
		})); err != nil {
			return err
		}
		if !changed { // SetThresholds wrote no entry
			err := audit.Append(tx, audit.Entry{
				Event: audit.ThresholdUpdate, Actor: by, ResourceType: audit.ResourceThresholds, ResourceID: patientID, PatientID: patientID, Reason: reason,
			}, now)
			if err != nil {
				return err
			}
		}
		return proposeAgain(tx, p, now)
	})
}

// changeByTemplate makes a change about a template in a transaction that rescores the patient, and returns the bounds in force after it.
func changeByTemplate(
	app core.App, patientID string, number int64, now time.Time, change func(core.App, *collections.Patient, *collections.ThresholdTemplate) error,
) (c alerts.Configuration, err error) {
	err = triage.UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		p, err := collections.FindPatient(tx, patientID)
		if err != nil {
			return "", fault.OrMissing(err)
		}
		t, err := collections.FindThresholdTemplate(tx, number)
		if err != nil {
			return "", fault.OrMissing(err)
		}
		if err := change(tx, p, t); err != nil {
			return "", err
		}
		c, err = alerts.Configured(tx, patientID)
		return patientID, err
	})
	return c, err
}

// askToLoosen returns a conflict that names the bounds a person set which applying a template again
// would loosen.
func askToLoosen(tx core.App, patientID string, number int64, bounds alerts.Bounds, applied []collections.AppliedTemplate, agreed bool) error {
	isAgain := slices.ContainsFunc(applied, func(a collections.AppliedTemplate) bool { return a.ID == number })
	if agreed || !isAgain {
		return nil
	}
	given := make([]alerts.Bounds, len(applied))
	for i, a := range applied {
		given[i] = a.Bounds
	}
	looser, err := alerts.Loosened(tx, patientID, bounds, given)
	if err != nil || len(looser) == 0 {
		return err
	}
	fields := fault.Fields{}
	for _, bound := range looser {
		now := "none"
		if bound.New != nil {
			now = vitals.FormatNumber(*bound.New)
		}
		fields.Add(bound.Field, fmt.Sprintf("A person set %s; the template has %s.", vitals.FormatNumber(*bound.Old), now))
	}
	conflict := fault.New(fault.Conflict, "would_loosen", "The template would loosen bounds that a person set. Send loosen: true to do so.")
	conflict.Fields = fields
	return conflict
}

// withApplied adds a template to those applied, the latest last, each once: the audit trail has the earlier applications.
func withApplied(list []collections.AppliedTemplate, latest collections.AppliedTemplate) []collections.AppliedTemplate {
	return append(slices.DeleteFunc(list, func(a collections.AppliedTemplate) bool { return a.ID == latest.ID }), latest)
}
