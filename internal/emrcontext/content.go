package emrcontext

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
)

// concealed makes the types that embed it refuse to print; they are encoded for storage and for the one answer that shows them.
type concealed struct{}

// Format reveals nothing.
func (concealed) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[chart]") }

// LogValue reveals nothing.
func (concealed) LogValue() slog.Value { return slog.StringValue("[chart]") }

// Code is a code of a terminology.
type Code struct {
	concealed
	System  string `json:"system"` // URI
	Code    string `json:"code"`
	Display string `json:"display"`
}

// Condition is a problem or diagnosis. Dates are YYYY-MM-DD, YYYY-MM or YYYY, "" when unknown, as in the other types.
type Condition struct {
	concealed
	Source     string `json:"source"` // the resource, as Condition/123
	Text       string `json:"text"`
	ICD10      string `json:"icd10_code"` // with its dot; "" without a code of ICD-10-CM
	Code       *Code  `json:"code"`       // the first code; nil for text only
	Status     string `json:"clinical_status"`
	Confidence string `json:"verification_status"`
	Category   string `json:"category"` // problem-list-item, encounter-diagnosis, health-concern, or ""
	Onset      string `json:"onset"`
	Date       string `json:"date"` // recorded
}

// Medication is a prescription.
type Medication struct {
	concealed
	Source string `json:"source"`
	Text   string `json:"text"`
	Code   *Code  `json:"code"`
	Status string `json:"status"`
	Dosage string `json:"dosage"`
	Date   string `json:"date"` // ordered
}

// Encounter is a visit or stay. Class is a code of HL7 v3 ActEncounterCode, such as IMP, ACUTE, EMER, OBSENC or AMB.
type Encounter struct {
	concealed
	Source string `json:"source"`
	Text   string `json:"text"`
	Class  string `json:"class"`
	Status string `json:"status"`
	Start  string `json:"start"` // as the EMR has it, with time where known
	End    string `json:"end"`   // "" while it lasts, or where the EMR does not record it
}

// Order is a ServiceRequest or DeviceRequest.
type Order struct {
	concealed
	Source       string `json:"source"`
	Text         string `json:"text"`
	Code         *Code  `json:"code"`
	Status       string `json:"status"`
	Date         string `json:"date"` // ordered
	Requester    string `json:"requester"`
	RequesterNPI string `json:"requester_npi"`
}

// Coverage is an insurance.
type Coverage struct {
	concealed
	Source       string `json:"source"`
	Payer        string `json:"payer"`
	PayerCode    string `json:"payer_code"` // an identifier of the payer
	MemberID     string `json:"member_id"`
	GroupNumber  string `json:"group_number"`
	Relationship string `json:"relationship"` // self, spouse, child, other or ""
	Status       string `json:"status"`
	Start        string `json:"start"`
	End          string `json:"end"`
	Order        int    `json:"order"` // 1 pays first; 0 is unknown
}

// Allergy is an allergy or intolerance.
type Allergy struct {
	concealed
	Source      string `json:"source"`
	Text        string `json:"text"`
	Code        *Code  `json:"code"`
	Status      string `json:"clinical_status"`
	Criticality string `json:"criticality"`
	Reaction    string `json:"reaction"`
	Date        string `json:"date"`
}

// Unavailable is a type of resource that could not be read, or not completely.
type Unavailable struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// The reasons. Source: docs/decisions/emr.md, "Context".
const (
	NoScope      = "no_scope"      // the EMR did not grant the scope
	NotSupported = "not_supported" // the EMR has no such resource or search
	Refused      = "refused"       // the EMR refused this search
	Failed       = "failed"        // no usable answer; what an earlier read found is kept
	Truncated    = "truncated"     // the EMR has more than is read
	OtherPatient = "other_patient" // the EMR returned another patient's resources, which are left out
	Unreadable   = "unreadable"    // some resources are malformed and left out
	NotFound     = "not_found"     // the EMR has no record with the patient's id, or replaced it by another
)

// Content is what was read of a chart. Lists are not nil.
type Content struct {
	concealed
	Conditions  []Condition   `json:"conditions"`
	Medications []Medication  `json:"medications"`
	Encounters  []Encounter   `json:"encounters"`
	Orders      []Order       `json:"orders"`
	Coverage    []Coverage    `json:"coverage"`
	Allergies   []Allergy     `json:"allergies"`
	Unavailable []Unavailable `json:"unavailable"`

	Deceased *Death `json:"deceased"` // not shown but as a proposal
}

// isAnswered reports whether the EMR returned all of the patient's resources of a type, so that a
// missing one does not exist.
func (c Content) isAnswered(resourceType string) bool {
	return !slices.ContainsFunc(c.Unavailable, func(u Unavailable) bool {
		return u.Resource == "Patient" && u.Reason == NotFound ||
			u.Resource == resourceType && slices.Contains([]string{NoScope, NotSupported, Refused, Failed, Truncated, Unreadable}, u.Reason)
	})
}

// Death is that the EMR's record is of a deceased patient.
type Death struct {
	concealed
	Date string `json:"date"` // YYYY-MM-DD, "" when the EMR does not have it
}

// emptyContent returns content with empty lists, which JSON shows as [].
func emptyContent() Content {
	return Content{
		Conditions: []Condition{}, Medications: []Medication{}, Encounters: []Encounter{}, Orders: []Order{}, Coverage: []Coverage{}, Allergies: []Allergy{},
		Unavailable: []Unavailable{},
	}
}

// seal returns the JSON form for the encrypted column.
func (c Content) seal() (phi.Text, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encode a chart: %w", err)
	}
	return phi.Text(text), nil
}

func openContent(text phi.Text) (Content, error) {
	c := emptyContent()
	if err := json.Unmarshal([]byte(text.Reveal()), &c); err != nil {
		return emptyContent(), fmt.Errorf("decode a chart: the stored JSON is damaged")
	}
	return c, nil
}

// day returns the date of a FHIR date or time; "" if it is shorter or no date.
func day(text string) string {
	if len(text) < len(time.DateOnly) {
		return ""
	}
	if _, err := time.Parse(time.DateOnly, text[:len(time.DateOnly)]); err != nil {
		return ""
	}
	return text[:len(time.DateOnly)]
}
