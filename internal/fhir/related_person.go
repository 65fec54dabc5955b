package fhir

import (
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Caregiver holds the fields of a caregiver's access from which a RelatedPerson is built.
type Caregiver struct {
	ID, PatientID string
	UserID        string // number of the account
	First, Last   phi.Text
	Email         phi.Text
	Relationship  string
	Active        bool
	Since         time.Time
	Until         string // the last day, YYYY-MM-DD, or the instant of the end; "" for no end
	UpdatedAt     time.Time
}

const (
	roleCodes         = "http://terminology.hl7.org/CodeSystem/v3-RoleCode"
	relationshipCodes = "http://terminology.hl7.org/CodeSystem/v2-0131"
)

// relationships are the codes of a caregiver's relationships. Source: FHIR R4, value set relatedperson-relationshiptype; HL7 v3 RoleCode.
var relationships = map[string]coding{
	"spouse": {roleCodes, "SPS", "spouse"}, "partner": {roleCodes, "DOMPART", "domestic partner"}, "parent": {roleCodes, "PRN", "parent"},
	"child": {roleCodes, "CHILD", "child"}, "sibling": {roleCodes, "SIB", "sibling"}, "grandparent": {roleCodes, "GRPRN", "grandparent"},
	"grandchild": {roleCodes, "GRNDCHILD", "grandchild"}, "relative": {roleCodes, "FAMMEMB", "family member"}, "friend": {roleCodes, "FRND", "unrelated friend"},
	"neighbor": {roleCodes, "NBOR", "neighbor"}, "guardian": {roleCodes, "GUARD", "guardian"}, "power_of_attorney": {roleCodes, "POWATT", "power of attorney"},
	"other": {relationshipCodes, "O", "Other"},
}

type (
	relatedPerson struct {
		ResourceType string         `json:"resourceType"`
		ID           string         `json:"id"`
		Meta         meta           `json:"meta"`
		Identifier   []identifier   `json:"identifier"`
		Active       bool           `json:"active"`
		Patient      reference      `json:"patient"`
		Relationship []concept      `json:"relationship,omitempty"`
		Name         []humanName    `json:"name,omitempty"`
		Telecom      []contactPoint `json:"telecom,omitempty"`
		Period       openPeriod     `json:"period"`
	}
)

// RelatedPerson returns a caregiver of a patient.
func RelatedPerson(c Caregiver) Resource {
	r := relatedPerson{
		ResourceType: "RelatedPerson", ID: c.ID, Meta: meta{Profile: []string{profilePrefix + "us-core-relatedperson"}},
		Identifier: []identifier{{userSystem, c.UserID}}, Active: c.Active, Patient: reference{Reference: "Patient/" + c.PatientID},
		Period: openPeriod{validate.FormatInstant(c.Since), c.Until},
	}
	if code, known := relationships[c.Relationship]; known {
		r.Relationship = []concept{{Coding: []coding{code}}}
	}
	if name := (humanName{Use: "usual", Family: c.Last.Reveal()}); c.First.Reveal() != "" || name.Family != "" {
		if c.First.Reveal() != "" {
			name.Given = []string{c.First.Reveal()}
		}
		r.Name = []humanName{name}
	}
	if email := c.Email.Reveal(); email != "" {
		r.Telecom = []contactPoint{{System: "email", Value: email}}
	}
	return withVersion(&r, &r.Meta, c.UpdatedAt)
}
