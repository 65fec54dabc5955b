package patients

import (
	"errors"
	"slices"
	"strconv"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// The states of a consent.
const (
	ConsentActive  = "active"
	ConsentRevoked = "revoked"
	ConsentExpired = "expired"
)

const (
	msgVerbal    = "Verbal consent needs notes."
	msgExpires   = "Must be after granted_at."
	msgUnborn    = "Must not be before the date of birth."
	msgEffective = "Must not be before granted_at, nor after the revocation."
	// grantTolerance allows for a recorder's clock that runs ahead.
	grantTolerance = 5 * time.Minute
)

// ConsentBody is the body that records a consent.
type ConsentBody struct {
	Type              validate.String `json:"type"`
	Method            validate.String `json:"method"`
	GrantedAt         validate.String `json:"granted_at"`
	ObtainedBy        validate.String `json:"obtained_by"`
	ExpiresAt         validate.String `json:"expires_at"`
	DocumentReference validate.String `json:"document_reference"`
	Notes             validate.String `json:"notes"`
}

// Read checks a body and returns the values to store. A bare date is its first moment in the practice's time zone; born is the patient's date of
// birth. Source: docs/decisions/patients.md, "Consent records".
func (b ConsentBody) Read(c *validate.Checks, now time.Time, practice *time.Location, born string) Draft {
	granted := dayOrInstant(c, "granted_at", b.GrantedAt, practice, true)
	expires := dayOrInstant(c, "expires_at", b.ExpiresAt, practice, false)
	columns := map[string]any{
		collections.ConsentType:              c.Text("type", b.Type, validate.Required(0).OneOf("rpm", "ccm", "data_sharing", "messaging")),
		collections.ConsentMethod:            c.Text("method", b.Method, validate.Required(0).OneOf("written", "verbal", "electronic")),
		collections.ConsentGrantedAt:         collections.FormatInstant(granted),
		collections.ConsentExpiresAt:         collections.FormatInstant(expires),
		collections.ConsentObtainedBy:        c.Text("obtained_by", b.ObtainedBy, validate.Optional(254)),
		collections.ConsentDocumentReference: c.Text("document_reference", b.DocumentReference, validate.Optional(500)),
		collections.ConsentNotes:             c.Text("notes", b.Notes, validate.Optional(4000).Multiline()),
	}
	if granted.After(now.Add(grantTolerance)) {
		c.Reject("granted_at", "Must not be in the future.")
	} else if !granted.IsZero() && granted.In(practice).Format(time.DateOnly) < born {
		c.Reject("granted_at", msgUnborn)
	}
	if !expires.IsZero() && !granted.IsZero() && !expires.After(granted) {
		c.Reject("expires_at", msgExpires)
	}
	if columns[collections.ConsentMethod] == "verbal" && columns[collections.ConsentNotes] == "" && c.Fields["notes"] == nil {
		c.Reject("notes", msgVerbal)
	}
	return Draft{columns}
}

func dayOrInstant(c *validate.Checks, name string, f validate.String, zone *time.Location, required bool) time.Time {
	if day, err := time.ParseInLocation(time.DateOnly, f.Value, zone); f.Given() && err == nil {
		f.Value = day.Format(time.RFC3339)
	}
	return c.Instant(name, f, required)
}

// GrantConsent records a consent of a patient who is not deleted. Source: docs/decisions/patients.md, "Consent records".
func GrantConsent(app core.App, patientID string, draft Draft, by audit.Actor, now time.Time) (granted *collections.Consent, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if _, err := collections.FindPatient(tx, patientID); err != nil {
			return fault.OrMissing(err)
		}
		consent, err := collections.NewConsent(tx)
		if err != nil {
			return err
		}
		for column, value := range draft.columns {
			consent.Set(column, value)
		}
		consent.Set(collections.ColumnPatient, patientID)
		consent.Set(collections.ConsentRecordedBy, by.Email)
		consent.Set(collections.ColumnCreatedAt, collections.FormatInstant(now))
		if err := tx.Save(consent); err != nil {
			return asFault(err)
		}
		granted = consent
		return audit.Append(tx, consentEntry(audit.ConsentGrant, consent, by), now)
	})
	return granted, err
}

// RevokeBody is the body that revokes a consent.
type RevokeBody struct {
	Reason      validate.String `json:"reason"`
	EffectiveAt validate.String `json:"effective_at"`
}

// Revocation is a validated [RevokeBody].
type Revocation struct {
	Reason      phi.Text
	EffectiveAt time.Time // zero for the time of the request
}

// Read checks a body. A bare date is its first moment in the practice's time zone.
func (b RevokeBody) Read(c *validate.Checks, now time.Time, practice *time.Location) Revocation {
	r := Revocation{Reason: phi.Text(c.Text("reason", b.Reason, validate.Required(500).Multiline()))}
	if r.EffectiveAt = dayOrInstant(c, "effective_at", b.EffectiveAt, practice, false); r.EffectiveAt.After(now) {
		c.Reject("effective_at", "Must not be in the future.")
	}
	return r
}

// RevokeConsent revokes a consent in force; any other is an invalid_state fault. A revocation that is recorded late has its own effective date.
// Source: docs/decisions/patients.md, "Consent records".
func RevokeConsent(app core.App, patientID string, number int64, r Revocation, by audit.Actor, now time.Time) (revoked *collections.Consent, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		_, err := collections.FindPatient(tx, patientID)
		if err == nil {
			revoked, err = collections.FindConsent(tx, patientID, number)
		}
		if err != nil {
			return fault.OrMissing(err)
		}
		if status := ConsentStatus(revoked, now); status != ConsentActive {
			return fault.State("invalid_state", "The consent is "+status+" already.")
		}
		if !r.EffectiveAt.IsZero() && r.EffectiveAt.Before(revoked.GrantedAt()) {
			return fault.Field("effective_at", msgEffective)
		}
		revoked.Set(collections.ConsentRevokedAt, collections.FormatInstant(now))
		revoked.Set(collections.ConsentEffectiveAt, collections.FormatInstant(r.EffectiveAt))
		revoked.Set(collections.ConsentRevokedBy, by.Email)
		revoked.Set(collections.ConsentRevokeReason, r.Reason.Reveal())
		if err := tx.Save(revoked); err != nil {
			return asFault(err)
		}
		entry := consentEntry(audit.ConsentRevoke, revoked, by)
		entry.Reason = r.Reason
		if !r.EffectiveAt.IsZero() {
			entry.Changes["effective_at"] = audit.Change{New: collections.FormatInstant(r.EffectiveAt)}
		}
		return audit.Append(tx, entry, now)
	})
	return revoked, err
}

func consentEntry(event audit.Event, consent *collections.Consent, by audit.Actor) audit.Entry {
	return audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceConsent, ResourceID: strconv.FormatInt(consent.Number(), 10),
		PatientID: consent.PatientID(), Changes: audit.Changes{"type": {New: consent.Type()}, "method": {New: consent.Method()}},
	}
}

// ConsentStatus returns the status of a consent at a time.
func ConsentStatus(consent *collections.Consent, at time.Time) string {
	switch expires := consent.ExpiresAt(); {
	case !consent.RevokedAt().IsZero():
		return ConsentRevoked
	case !expires.IsZero() && !at.Before(expires):
		return ConsentExpired
	}
	return ConsentActive
}

// revocationColumns are the columns of a consent that may change, once.
var revocationColumns = []string{collections.ConsentRevokedAt, collections.ConsentRevokedBy, collections.ConsentRevokeReason, collections.ConsentEffectiveAt}

var errConsentFixed = errors.New("a consent is never edited: revoke it and record another")

// GuardConsent checks a consent before any writer stores it: a new one must be complete, a stored one can only be revoked.
// Source: docs/decisions/patients.md, "Consent records".
func GuardConsent(app core.App, record *core.Record, by audit.Actor, now time.Time) error {
	consent := collections.AsConsent(record)
	if record.IsNew() {
		return newConsent(app, consent, by, now)
	}
	stored, err := collections.FindConsent(app, record.Original().GetString(collections.ColumnPatient), consent.Number())
	if err != nil {
		return err
	}
	for _, name := range record.Collection().Fields.FieldNames() {
		if consent.GetString(name) == stored.GetString(name) {
			continue
		}
		if !slices.Contains(revocationColumns, name) || !stored.RevokedAt().IsZero() {
			return validation.Errors{name: validation.NewError("fixed", errConsentFixed.Error())}
		}
	}
	if consent.RevokedAt().IsZero() {
		return revokedOnly(consent)
	}
	if consent.RevokedBy() == "" {
		consent.Set(collections.ConsentRevokedBy, authorOf(by))
	}
	if at := consent.EffectiveAt(); !at.IsZero() && (at.Before(consent.GrantedAt()) || at.After(consent.RevokedAt())) {
		return validation.Errors{collections.ConsentEffectiveAt: validation.NewError("validation_invalid_value", msgEffective)}
	}
	if consent.RevokeReason() == "" {
		return validation.Errors{collections.ConsentRevokeReason: validation.NewError("validation_required", "This field is required.")}
	}
	return nil
}

func newConsent(app core.App, consent *collections.Consent, by audit.Actor, now time.Time) error {
	wrong := validation.Errors{}
	complain := func(column, message string) { wrong[column] = validation.NewError("validation_invalid_value", message) }
	granted, expires := consent.GrantedAt(), consent.ExpiresAt()
	if p, err := collections.FindPatient(app, consent.PatientID()); collections.IsNotFound(err) {
		complain(collections.ColumnPatient, "There is no such patient.")
	} else if err != nil {
		return err
	} else if granted.AddDate(0, 0, 1).Format(time.DateOnly) < p.Demographics().DateOfBirth { // a day for any zone
		complain(collections.ConsentGrantedAt, msgUnborn)
	}
	if granted.IsZero() || granted.After(now.Add(grantTolerance)) {
		complain(collections.ConsentGrantedAt, "Must be a time that is not in the future.")
	}
	if !expires.IsZero() && !expires.After(granted) {
		complain(collections.ConsentExpiresAt, msgExpires)
	}
	if consent.Method() == "verbal" && consent.Notes() == "" {
		complain(collections.ConsentNotes, msgVerbal)
	}
	if err := revokedOnly(consent); err != nil || !consent.RevokedAt().IsZero() {
		complain(collections.ConsentRevokedAt, "A new consent is not revoked.")
	}
	if len(wrong) > 0 {
		return wrong
	}
	for column, value := range map[string]string{collections.ColumnCreatedAt: collections.FormatInstant(now), collections.ConsentRecordedBy: authorOf(by)} {
		if consent.GetString(column) == "" {
			consent.Set(column, value)
		}
	}
	return nil
}

// revokedOnly rejects the author, reason or effective date of a revocation without a time.
func revokedOnly(consent *collections.Consent) error {
	if consent.RevokedBy() != "" || consent.RevokeReason() != "" || !consent.EffectiveAt().IsZero() {
		return validation.Errors{collections.ConsentRevokedAt: validation.NewError("validation_required", "This field is required.")}
	}
	return nil
}
