package fhir

import (
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Alert holds the fields of an alert from which a Flag is built.
type Alert struct {
	ID          string // resource id: the number of the alert
	PatientID   string
	Type, Level string
	Message     phi.Text
	// IsAdministrative: the alert is about a device or missing data, not about the patient's values.
	IsAdministrative bool
	// IsResolved: the alert is closed. IsRetracted: its reading was entered in error.
	IsResolved, IsRetracted          bool
	CreatedAt, ResolvedAt, UpdatedAt time.Time
}

type (
	openPeriod struct {
		Start string `json:"start"`
		End   string `json:"end,omitempty"`
	}
	flag struct {
		ResourceType string     `json:"resourceType"`
		ID           string     `json:"id"`
		Meta         meta       `json:"meta"`
		Status       string     `json:"status"`
		Category     []concept  `json:"category"`
		Code         concept    `json:"code"`
		Subject      reference  `json:"subject"`
		Period       openPeriod `json:"period"`
		Author       reference  `json:"author"`
	}
)

// flagCategory returns the category of an alert. Source: FHIR R4, value set flag-category.
func flagCategory(ofThings bool) concept {
	const system = "http://terminology.hl7.org/CodeSystem/flag-category"
	if ofThings {
		return concept{Coding: []coding{{system, "admin", "Administrative"}}}
	}
	return concept{Coding: []coding{{system, "clinical", "Clinical"}}}
}

// Flag returns an alert as a Flag, active until the alert is resolved. Source: docs/decisions/fhir.md, "Alerts as flags".
func Flag(a Alert) Resource {
	r := flag{
		ResourceType: "Flag", ID: a.ID, Status: "active", Category: []concept{flagCategory(a.IsAdministrative)},
		Code: concept{
			Coding: []coding{{System: alertTypeSystem, Code: a.Type}, {System: alertLevelSystem, Code: a.Level}}, Text: a.Message.Reveal(),
		},
		Subject: reference{Reference: "Patient/" + a.PatientID}, Period: openPeriod{Start: validate.FormatInstant(a.CreatedAt)},
		Author: reference{Type: "Device", Display: "Vigil"},
	}
	if !a.ResolvedAt.IsZero() {
		r.Period.End = validate.FormatInstant(a.ResolvedAt)
	}
	switch {
	case a.IsRetracted:
		r.Status = "entered-in-error"
	case a.IsResolved:
		r.Status = "inactive"
	}
	return withVersion(&r, &r.Meta, a.UpdatedAt)
}
