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
	"github.com/vigilhealth/vigil/internal/validate"
)

// DeclineBody is the body that declines a proposed template.
type DeclineBody struct {
	TemplateID validate.Integer `json:"template_id"`
	Reason     validate.String  `json:"reason"`
}

// DeclineRequest is a validated [DeclineBody].
type DeclineRequest struct {
	Number int64
	Reason phi.Text // 1 to 500 characters
}

func (b DeclineBody) Read(c *validate.Checks) (choice DeclineRequest) {
	if number := c.Integer("template_id", b.TemplateID, true); number != nil {
		choice.Number = *number
	}
	choice.Reason = phi.Text(c.Text("reason", b.Reason, validate.Required(500)))
	return choice
}

// Decline records that a clinician does not want a proposed template for a patient: its provisional bounds end, and it is proposed again
// only after the diagnoses change. Declining twice changes nothing. A template that is not proposed is a conflict. Source:
// docs/decisions/alerts.md, "Proposed templates".
func Decline(app core.App, patientID string, choice DeclineRequest, by audit.Actor, now time.Time) (alerts.Configuration, error) {
	return changeByTemplate(app, patientID, choice.Number, now, func(tx core.App, p *collections.Patient, t *collections.ThresholdTemplate) error {
		declined, err := declinedOf(tx, patientID)
		if err != nil || slices.ContainsFunc(declined, func(d collections.DeclinedTemplate) bool { return d.ID == t.Number() }) {
			return err
		}
		return decline(tx, p, t, declined, choice.Reason, by, now)
	})
}

func decline(
	tx core.App, p *collections.Patient, t *collections.ThresholdTemplate, declined []collections.DeclinedTemplate, reason phi.Text, by audit.Actor, now time.Time,
) error {
	needs, err := NeedsOf(tx, []Candidate{CandidateOf(p, now, collections.PracticeZone(tx))})
	if err != nil {
		return err
	}
	if !slices.Contains(needs[p.Id].All, t.Number()) {
		return fault.New(fault.Conflict, "not_proposed", "This template is not proposed for the patient.")
	}
	declined = append(declined, collections.DeclinedTemplate{ID: t.Number(), At: validate.FormatInstant(now), By: by.Email})
	if err := collections.StoreDeclinedTemplates(tx, p.Id, declined); err != nil {
		return err
	}
	if err := proposeAgain(tx, p, now); err != nil {
		return err
	}
	return audit.Append(tx, audit.Entry{
		Event: audit.ThresholdDecline, Actor: by, ResourceType: audit.ResourceThresholds, ResourceID: p.Id, PatientID: p.Id, Reason: reason,
		Changes: audit.Changes{"declined_template": {New: fmt.Sprintf("%s, version %d", t.Name(), t.Version())}},
	}, now)
}

// declinedOf returns a patient's declined proposals.
func declinedOf(tx core.App, patientID string) ([]collections.DeclinedTemplate, error) {
	states, err := collections.ThresholdsStates(tx, []string{patientID})
	if err != nil || len(states) == 0 {
		return nil, err
	}
	return collections.ParseDeclinedTemplates(states[0].Declined)
}

// Reconsider proposes templates to a stored patient. Other diagnoses than before end earlier decisions to decline: a template declined in
// one pregnancy is proposed again in the next.
func Reconsider(tx core.App, p, before *collections.Patient, now time.Time, practice *time.Location) error {
	if before != nil && !SameDiagnoses(p.ICD10Codes(), before.ICD10Codes()) {
		if err := collections.StoreDeclinedTemplates(tx, p.Id, nil); err != nil {
			return err
		}
	}
	_, err := Propose(tx, []Candidate{CandidateOf(p, now, practice)}, 0, now)
	return err
}
