package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Consent is what a patient agreed to, when and how.
type Consent struct{ core.BaseRecordProxy }

// AsConsent reads a record of the consents collection as a Consent.
func AsConsent(record *core.Record) *Consent { return as[Consent](record) }

// NewConsent returns an unsaved consent with the next number.
func NewConsent(app core.App) (*Consent, error) {
	return numbered[Consent](app, Consents)
}

// FindConsent finds one consent of a patient.
func FindConsent(app core.App, patientID string, number int64) (*Consent, error) {
	return findWhole[Consent](app, Consents, dbx.HashExp{"id": NumberID(number), "patient": patientID})
}

// PageOfConsents returns a page of a patient's consents, newest first, and how many there are in all.
func PageOfConsents(app core.App, patientID string, offset, limit int) (page []*Consent, total int, err error) {
	where := dbx.HashExp{"patient": patientID}
	if err := app.DB().Select("COUNT(*)").From(Consents).Where(where).Row(&total); err != nil {
		return nil, 0, fmt.Errorf("count consents: %w", err)
	}
	err = app.RecordQuery(Consents).AndWhere(where).OrderBy("granted_at DESC", "id DESC").Offset(int64(offset)).Limit(int64(limit)).All(&page)
	return page, total, wrap(err, "list consents")
}

func (c *Consent) Number() int64               { return Number(c.Id) }
func (c *Consent) PatientID() string           { return c.GetString("patient") }
func (c *Consent) Type() string                { return c.GetString("type") }
func (c *Consent) Method() string              { return c.GetString("method") }
func (c *Consent) ObtainedBy() string          { return c.GetString("obtained_by") }
func (c *Consent) RecordedBy() string          { return c.GetString("recorded_by") }
func (c *Consent) RevokedBy() string           { return c.GetString("revoked_by") }
func (c *Consent) DocumentReference() phi.Text { return phi.Text(c.GetString("document_reference")) }
func (c *Consent) Notes() phi.Text             { return phi.Text(c.GetString("notes")) }
func (c *Consent) RevokeReason() phi.Text      { return phi.Text(c.GetString("revoke_reason")) }
func (c *Consent) GrantedAt() time.Time        { return ParseInstant(c.GetString("granted_at")) }
func (c *Consent) ExpiresAt() time.Time        { return ParseInstant(c.GetString("expires_at")) }
func (c *Consent) RevokedAt() time.Time        { return ParseInstant(c.GetString("revoked_at")) }
func (c *Consent) CreatedAt() time.Time        { return ParseInstant(c.GetString("created_at")) }
