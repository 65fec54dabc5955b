package fhir

import (
	"strconv"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// StoredPatient holds the fields of a patient from which a Patient resource is built. The caller leaves fields empty that
// the reader may not see.
type StoredPatient struct {
	ID           string // UUID
	Demographics phi.Demographics
	Gender       string // FHIR administrative gender code
	MRN          string
	// ExternalID is the patient's id in the EMR, without "Patient/"; "" for none.
	ExternalID string
	Active     bool
	DeceasedAt string // YYYY-MM-DD; "" for none
	Language   string // preferred, a BCP 47 tag; "" for none
	Version    int    // counts changes from 1
	UpdatedAt  time.Time
}

// Systems are the URIs of the systems of a patient's identifiers.
type Systems struct{ MRN, EMRID string }

type (
	patientIdentifier struct {
		Use    string   `json:"use,omitempty"`
		Type   *concept `json:"type,omitempty"`
		System string   `json:"system"`
		Value  string   `json:"value"`
	}
	extension struct {
		URL       string `json:"url"`
		ValueCode string `json:"valueCode"`
	}
	humanName struct {
		Extension []extension `json:"extension,omitempty"`
		Use       string      `json:"use"`
		Family    string      `json:"family,omitempty"`
		Given     []string    `json:"given,omitempty"`
	}
	contactPoint struct {
		System string `json:"system"`
		Value  string `json:"value"`
		Use    string `json:"use,omitempty"`
	}
	address struct {
		Use        string   `json:"use"`
		Line       []string `json:"line"`
		City       string   `json:"city,omitempty"`
		State      string   `json:"state,omitempty"`
		PostalCode string   `json:"postalCode,omitempty"`
		Country    string   `json:"country,omitempty"`
	}
	communication struct {
		Language  concept `json:"language"`
		Preferred bool    `json:"preferred"`
	}
	patient struct {
		ResourceType  string              `json:"resourceType"`
		ID            string              `json:"id"`
		Meta          meta                `json:"meta"`
		Identifier    []patientIdentifier `json:"identifier"`
		Active        bool                `json:"active"`
		Name          []humanName         `json:"name"`
		Telecom       []contactPoint      `json:"telecom,omitempty"`
		Gender        string              `json:"gender"`
		BirthDate     string              `json:"birthDate,omitempty"`
		Deceased      string              `json:"deceasedDateTime,omitempty"`
		Address       []address           `json:"address,omitempty"`
		Communication []communication     `json:"communication,omitempty"`
	}
)

// Patient returns the resource that the API serves. It never contains the social security number.
// Source: docs/decisions/patients.md, "FHIR Patient"; US Core Patient.
func Patient(s StoredPatient, systems Systems) Resource {
	p := patient{
		ResourceType: "Patient",
		ID:           s.ID,
		Meta: meta{
			VersionID: strconv.Itoa(max(s.Version, 1)), LastUpdated: validate.FormatInstant(s.UpdatedAt),
			Profile: []string{profilePrefix + "us-core-patient"},
		},
		Identifier: []patientIdentifier{{
			Use: "usual", System: systems.MRN, Value: s.MRN,
			Type: &concept{Coding: []coding{{System: "http://terminology.hl7.org/CodeSystem/v2-0203", Code: "MR"}}},
		}},
		Active:    s.Active,
		Name:      []humanName{nameOf(s.Demographics)},
		Gender:    s.Gender,
		BirthDate: s.Demographics.DateOfBirth,
		Deceased:  s.DeceasedAt,
	}
	if s.ExternalID != "" {
		p.Identifier = append(p.Identifier, patientIdentifier{System: systems.EMRID, Value: s.ExternalID})
	}
	if s.Demographics.Phone != "" {
		p.Telecom = append(p.Telecom, contactPoint{System: "phone", Value: s.Demographics.Phone, Use: "home"})
	}
	if s.Demographics.Email != "" {
		p.Telecom = append(p.Telecom, contactPoint{System: "email", Value: s.Demographics.Email})
	}
	if a := s.Demographics.Address; a != nil {
		home := address{Use: "home", Line: []string{a.Line1}, City: a.City, State: a.State, PostalCode: a.Zip, Country: a.Country}
		if a.Line2 != "" {
			home.Line = append(home.Line, a.Line2)
		}
		p.Address = []address{home}
	}
	if s.Language != "" {
		p.Communication = []communication{{Language: concept{Coding: []coding{{System: languageSystem, Code: s.Language}}}, Preferred: true}}
	}
	return Resource{content: p}
}

// languageSystem is that of language tags. Source: FHIR R4, terminologies-systems.html.
const languageSystem = "urn:ietf:bcp:47"

// nameOf returns the official name. US Core requires a given or family name, or a reason why it is absent: here, that the
// sealed name cannot be opened. Source: US Core, invariant us-core-6.
func nameOf(who phi.Demographics) humanName {
	name := humanName{Use: "official", Family: who.LastName}
	if who.FirstName != "" {
		name.Given = []string{who.FirstName}
	}
	if name.Family == "" && name.Given == nil {
		name.Extension = []extension{{"http://hl7.org/fhir/StructureDefinition/data-absent-reason", "unknown"}}
	}
	return name
}
