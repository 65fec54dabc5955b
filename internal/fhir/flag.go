package fhir

import (
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// RaisedAlert is an alert as it is read.
type RaisedAlert struct {
	ID          string // of the resource, and the number of the alert
	PatientID   string
	Type, Level string
	Message     phi.Text
	// OfThings: it is about a device, or about data that did not come, and not about the patient's values.
	OfThings bool
	// Over: it was resolved; Withdrawn: it came of a reading that was entered in error.
	Over, Withdrawn                  bool
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

func (f *flag) about() *meta { return &f.Meta }

// flagCategory tells what is about the patient's values from what is about things. Source: FHIR R4, value set flag-category.
func flagCategory(ofThings bool) concept {
	const system = "http://terminology.hl7.org/CodeSystem/flag-category"
	if ofThings {
		return concept{Coding: []coding{{system, "admin", "Administrative"}}}
	}
	return concept{Coding: []coding{{system, "clinical", "Clinical"}}}
}

// Flag is an alert: active until it is resolved. Source: docs/decisions/fhir.md, "Alerts as flags".
func Flag(a RaisedAlert) Resource {
	r := flag{
		ResourceType: "Flag", ID: a.ID, Status: "active", Category: []concept{flagCategory(a.OfThings)},
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
	case a.Withdrawn:
		r.Status = "entered-in-error"
	case a.Over:
		r.Status = "inactive"
	}
	return edition(&r, a.UpdatedAt)
}
