package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/routes/web"
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
func viewConsent(c *web.Call, consent *collections.Consent) consentView {
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

func consentFor(c *web.Call) func(*collections.Consent) consentView {
	return func(consent *collections.Consent) consentView { return viewConsent(c, consent) }
}

func (a *api) listConsents(c *web.Call, patient *collections.Patient) error {
	q := c.Query()
	p := q.Paging()
	if err := q.Err(); err != nil {
		return err
	}
	page, total, err := collections.PageOfConsents(c.App, patient.Id, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	page, unreadable := collections.ReadableOnly(page)
	if err := c.RecordRead(audit.PatientRead, audit.ResourceConsent, "", patient.Id); err != nil {
		return err
	}
	return web.List(c, p, total, web.Views(page, consentFor(c)), unreadable)
}

func (a *api) grantConsent(c *web.Call, patient *collections.Patient) error {
	draft, err := web.Read(c, func(body patients.ConsentBody, checks *input.Checks) patients.Draft {
		return body.Read(checks, c.Now, a.Zone)
	})
	if err != nil {
		return err
	}
	return web.Show(c.Created, consentFor(c))(patients.GrantConsent(c.App, patient.Id, draft, c.Actor(), c.Now))
}

func (a *api) revokeConsent(c *web.Call, patient *collections.Patient) error {
	number, err := c.PathInteger("consent_id")
	if err != nil {
		return err
	}
	reason, err := reason(c)
	if err != nil {
		return err
	}
	return web.Show(c.OK, consentFor(c))(patients.RevokeConsent(c.App, patient.Id, number, reason, c.Actor(), c.Now))
}
