package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Columns of a consent that other packages write.
const (
	ConsentType              = "type"
	ConsentMethod            = "method"
	ConsentObtainedBy        = "obtained_by"
	ConsentRecordedBy        = "recorded_by"
	ConsentDocumentReference = "document_reference"
	ConsentNotes             = "notes"
	ConsentGrantedAt         = "granted_at"
	ConsentExpiresAt         = "expires_at"
	ConsentRevokedAt         = "revoked_at"
	ConsentRevokedBy         = "revoked_by"
	ConsentRevokeReason      = "revoke_reason"
	ConsentEffectiveAt       = "effective_at"
)

// Consent is a patient's agreement: its type, method and dates.
type Consent struct{ patientRecord }

// AsConsent converts a record of the consents collection.
func AsConsent(record *core.Record) *Consent { return as[Consent](record) }

// NewConsent returns an unsaved consent with the next number.
func NewConsent(app core.App) (*Consent, error) {
	return newRecord[Consent](app, Consents, nil)
}

// FindConsent finds one consent of a patient.
func FindConsent(app core.App, patientID string, number int64) (*Consent, error) {
	return findReadable[Consent](app, Consents, dbx.HashExp{"id": NumberID(number), "patient": patientID})
}

// PageOfConsents returns a page of a patient's consents, newest first, and the total.
func PageOfConsents(app core.App, patientID string, offset, limit int) ([]*Consent, int, error) {
	return pageOf[Consent](app, Consents, dbx.HashExp{"patient": patientID}, []string{"granted_at DESC", "id DESC"}, offset, limit)
}

func (c *Consent) Number() int64      { return Number(c.Id) }
func (c *Consent) Type() string       { return c.GetString(ConsentType) }
func (c *Consent) Method() string     { return c.GetString(ConsentMethod) }
func (c *Consent) ObtainedBy() string { return c.GetString(ConsentObtainedBy) }
func (c *Consent) RecordedBy() string { return c.GetString(ConsentRecordedBy) }
func (c *Consent) RevokedBy() string  { return c.GetString(ConsentRevokedBy) }
func (c *Consent) DocumentReference() phi.Text {
	return phi.Text(c.GetString(ConsentDocumentReference))
}
func (c *Consent) Notes() phi.Text        { return phi.Text(c.GetString(ConsentNotes)) }
func (c *Consent) RevokeReason() phi.Text { return phi.Text(c.GetString(ConsentRevokeReason)) }
func (c *Consent) GrantedAt() time.Time   { return instantOf(c, ConsentGrantedAt) }
func (c *Consent) ExpiresAt() time.Time   { return instantOf(c, ConsentExpiresAt) }
func (c *Consent) RevokedAt() time.Time   { return instantOf(c, ConsentRevokedAt) }

// EffectiveAt returns when the consent ended, if that was before its revocation was recorded; zero otherwise.
func (c *Consent) EffectiveAt() time.Time { return instantOf(c, ConsentEffectiveAt) }

// PatientsWithConsent returns which of the patients have a consent of a type in force.
func PatientsWithConsent(app core.App, kind string, patientIDs []string, at time.Time) (map[string]bool, error) {
	params := idParams(patientIDs)
	params["kind"], params["at"] = kind, FormatInstant(at)
	found, err := queryColumn[string](app, "find consents in force", `SELECT DISTINCT patient FROM consents WHERE patient`+inIDs+`
		AND type = {:kind} AND granted_at <= {:at} AND revoked_at = '' AND (expires_at = '' OR expires_at > {:at})`, params)
	return setOf(found), err
}
