package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/patients"
)

// consentView is a consent as the contract shows it.
type consentView struct {
	ID                int64   `json:"id"`
	PatientID         string  `json:"patient_id"`
	Type              string  `json:"type"`
	Method            string  `json:"method"`
	Status            string  `json:"status"`
	GrantedAt         *string `json:"granted_at"`
	ExpiresAt         *string `json:"expires_at"`
	ObtainedBy        *string `json:"obtained_by"`
	RecordedBy        *string `json:"recorded_by"`
	DocumentReference *string `json:"document_reference"`
	Notes             *string `json:"notes"`
	RevokedAt         *string `json:"revoked_at"`
	RevokedBy         *string `json:"revoked_by"`
	RevokeReason      *string `json:"revoke_reason"`
	CreatedAt         *string `json:"created_at"`
}

// viewConsent shows a consent; a portal user is not told the names of staff.
func viewConsent(c *call, consent *collections.Consent) consentView {
	view := consentView{
		ID: consent.Number(), PatientID: consent.PatientID(), Type: consent.Type(), Method: consent.Method(),
		Status: patients.ConsentStatus(consent, c.Now), GrantedAt: instantOrNull(consent.GrantedAt()), ExpiresAt: instantOrNull(consent.ExpiresAt()),
		ObtainedBy: orNull(consent.ObtainedBy()), RecordedBy: orNull(consent.RecordedBy()),
		DocumentReference: orNull(consent.DocumentReference().Reveal()), Notes: orNull(consent.Notes().Reveal()),
		RevokedAt: instantOrNull(consent.RevokedAt()), RevokedBy: orNull(consent.RevokedBy()), RevokeReason: orNull(consent.RevokeReason().Reveal()),
		CreatedAt: instantOrNull(consent.CreatedAt()),
	}
	if c.Caller.Role == access.Patient {
		view.ObtainedBy, view.RecordedBy, view.RevokedBy = nil, nil, nil
	}
	return view
}

func (a *api) listConsents(c *call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	q := c.query()
	p := q.paging()
	if err := q.err(); err != nil {
		return err
	}
	page, total, err := collections.PageOfConsents(c.App, patient.Id, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	page, unreadable := collections.ReadableOnly(page)
	if err := c.recordRead(audit.PatientRead, "Consent", "", patient.Id); err != nil {
		return err
	}
	views := make([]consentView, len(page))
	for i, consent := range page {
		views[i] = viewConsent(c, consent)
	}
	return list(c, p, total, views, unreadable)
}

func (a *api) grantConsent(c *call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	var body patients.ConsentBody
	if err := c.decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	draft := body.Read(checks, c.Now, a.Zone)
	if err := checks.Err(); err != nil {
		return err
	}
	consent, err := patients.GrantConsent(c.App, patient.Id, draft, c.actor(), c.Now)
	if err != nil {
		return err
	}
	return c.created(viewConsent(c, consent))
}

func (a *api) revokeConsent(c *call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	number, err := c.pathInteger("consent_id")
	if err != nil {
		return err
	}
	reason, err := c.reason()
	if err != nil {
		return err
	}
	consent, err := patients.RevokeConsent(c.App, patient.Id, number, reason, c.actor(), c.Now)
	if err != nil {
		return err
	}
	return c.ok(viewConsent(c, consent))
}
