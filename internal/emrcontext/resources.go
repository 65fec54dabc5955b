package emrcontext

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/validate"
)

// maxText bounds the characters kept of a text.
const maxText = 300

func clean(text string) string {
	text = validate.CleanLine(text)
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText-1]) + "…"
	}
	return text
}

// The URIs of terminologies. Source: FHIR R4, terminologies-systems.html.
const (
	icd10System = "http://hl7.org/fhir/sid/icd-10-cm"
	cptSystem   = "http://www.ama-assn.org/go/cpt"
	hcpcsSystem = "https://www.cms.gov/Medicare/Coding/HCPCSReleaseCodeSets"
	npiSystem   = "http://hl7.org/fhir/sid/us-npi"
)

type coding struct {
	System  string `json:"system"`
	Code    string `json:"code"`
	Display string `json:"display"`
}

type concept struct {
	Coding []coding `json:"coding"`
	Text   string   `json:"text"`
}

// text returns the text of a concept, else the first display, else the first code: a code without display is better than an empty line.
func (c concept) text() string {
	if text := clean(c.Text); text != "" {
		return text
	}
	for _, coded := range c.Coding {
		if text := clean(coded.Display); text != "" {
			return text
		}
	}
	return clean(c.code("").Code)
}

// code returns the first code of a system, or of any for ""; zero if there is none.
func (c concept) code(system string) coding {
	at := slices.IndexFunc(c.Coding, func(coded coding) bool { return coded.Code != "" && (system == "" || coded.System == system) })
	if at < 0 {
		return coding{}
	}
	return c.Coding[at]
}

func (c concept) view() *Code {
	first := c.code("")
	if first.Code == "" {
		return nil
	}
	return &Code{System: clean(first.System), Code: clean(first.Code), Display: clean(first.Display)}
}

type reference struct {
	Reference  string     `json:"reference"`
	Display    string     `json:"display"`
	Identifier identifier `json:"identifier"`
}

type identifier struct {
	System string `json:"system"`
	Value  string `json:"value"`
}

type period struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// coverageClass is a group or plan of a Coverage.
type coverageClass struct {
	Type  concept `json:"type"`
	Value string  `json:"value"`
}

// resource is the union of the elements that are read of the resources of a chart; names that differ in type are raw.
type resource struct {
	ResourceType string `json:"resourceType"`
	ID           string `json:"id"`
	Status       string `json:"status"`
	Intent       string `json:"intent"`
	DoNotPerform bool   `json:"doNotPerform"`

	Subject     reference `json:"subject"`
	Patient     reference `json:"patient"`
	Beneficiary reference `json:"beneficiary"`

	Code         concept         `json:"code"`
	CodeConcept  concept         `json:"codeCodeableConcept"` // DeviceRequest
	Category     json.RawMessage `json:"category"`            // concepts, or codes of an AllergyIntolerance
	Clinical     concept         `json:"clinicalStatus"`
	Verification concept         `json:"verificationStatus"`

	Onset        string `json:"onsetDateTime"`
	OnsetPeriod  period `json:"onsetPeriod"`
	RecordedDate string `json:"recordedDate"`
	AuthoredOn   string `json:"authoredOn"`

	MedicationConcept   concept           `json:"medicationCodeableConcept"`
	MedicationReference reference         `json:"medicationReference"`
	Contained           []json.RawMessage `json:"contained"`
	Dosage              []struct {
		Text string `json:"text"`
	} `json:"dosageInstruction"`

	Class   coding    `json:"-"` // of an Encounter
	Types   []concept `json:"-"`
	Period  period    `json:"period"`
	Request reference `json:"requester"`

	Payor        []reference     `json:"payor"`
	SubscriberID string          `json:"subscriberId"`
	Relationship concept         `json:"relationship"`
	Order        int             `json:"order"`
	CoverClass   []coverageClass `json:"-"`

	Criticality string `json:"criticality"`
	Reaction    []struct {
		Manifestation []concept `json:"manifestation"`
	} `json:"reaction"`
}

// decode decodes JSON and skips members of another type than expected: a side value must not hide a resource.
func decode(raw json.RawMessage, into any) bool {
	err := json.Unmarshal(raw, into)
	_, isOneMember := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || isOneMember
}

// parse reads a resource.
func parse(raw json.RawMessage) (r resource, ok bool) {
	if !decode(raw, &r) || r.ResourceType == "" {
		return r, false
	}
	switch r.ResourceType {
	case "Encounter":
		var own struct {
			Class coding    `json:"class"`
			Type  []concept `json:"type"`
		}
		if decode(raw, &own) {
			r.Class, r.Types = own.Class, own.Type
		}
	case "Coverage":
		var own struct {
			Class []coverageClass `json:"class"`
		}
		if decode(raw, &own) {
			r.CoverClass = own.Class
		}
	}
	return r, true
}

// source returns the relative reference of a resource; "" for an id that FHIR does not permit.
func (r resource) source() string {
	if r.ID == "" || len(r.ID) > 64 || strings.ContainsAny(r.ID, "/?# ") {
		return ""
	}
	return r.ResourceType + "/" + r.ID
}

// isAbout reports whether a resource names the patient, and no one else: by a relative reference, or an absolute one of the EMR.
func (r resource) isAbout(emrID, base string) bool {
	named := slices.DeleteFunc([]string{r.Subject.Reference, r.Patient.Reference, r.Beneficiary.Reference}, func(ref string) bool { return ref == "" })
	return len(named) > 0 && !slices.ContainsFunc(named, func(ref string) bool {
		ref = strings.TrimPrefix(ref, strings.TrimRight(base, "/")+"/")
		ref, _, _ = strings.Cut(ref, "/_history/")
		return ref != "Patient/"+emrID
	})
}

// contained returns the resource that a reference to a fragment names; nil for none.
func (r resource) contained(ref reference) json.RawMessage {
	id, isFragment := strings.CutPrefix(ref.Reference, "#")
	for _, raw := range r.Contained {
		if found, ok := parse(raw); isFragment && ok && found.ID == id {
			return raw
		}
	}
	return nil
}

// organization is the part of an Organization that is read.
type organization struct {
	Name       string       `json:"name"`
	Identifier []identifier `json:"identifier"`
}

func (r resource) categories() (codes []string) {
	var concepts []concept
	if json.Unmarshal(r.Category, &concepts) == nil {
		for _, c := range concepts {
			for _, coded := range c.Coding {
				codes = append(codes, coded.Code)
			}
		}
	}
	return codes
}

// isRefuted reports whether a condition or an allergy does not hold: entered in error, or refuted.
func (r resource) isRefuted() bool {
	return slices.ContainsFunc(r.Verification.Coding, func(c coding) bool { return c.Code == "entered-in-error" || c.Code == "refuted" })
}

func (r resource) condition() Condition {
	c := Condition{
		Source: r.source(), Text: r.Code.text(), Code: r.Code.view(), ICD10: strings.ToUpper(clean(r.Code.code(icd10System).Code)),
		Status: clean(r.Clinical.code("").Code), Confidence: clean(r.Verification.code("").Code),
		Onset: clean(cmp.Or(r.Onset, r.OnsetPeriod.Start)), Date: day(r.RecordedDate),
	}
	if codes := r.categories(); len(codes) > 0 {
		c.Category = clean(codes[0])
		if slices.Contains(codes, "problem-list-item") {
			c.Category = "problem-list-item"
		}
	}
	return c
}

func (r resource) medication(named concept) Medication {
	m := Medication{
		Source: r.source(), Text: cmp.Or(named.text(), clean(r.MedicationReference.Display)), Code: named.view(), Status: clean(r.Status), Date: day(r.AuthoredOn),
	}
	if len(r.Dosage) > 0 {
		m.Dosage = clean(r.Dosage[0].Text)
	}
	return m
}

func (r resource) encounter() Encounter {
	e := Encounter{Source: r.source(), Class: strings.ToUpper(clean(r.Class.Code)), Status: clean(r.Status), Start: clean(r.Period.Start), End: clean(r.Period.End)}
	if len(r.Types) > 0 {
		e.Text = r.Types[0].text()
	}
	e.Text = cmp.Or(e.Text, clean(r.Class.Display))
	return e
}

func (r resource) order() Order {
	named := r.Code
	if len(named.Coding) == 0 && named.Text == "" {
		named = r.CodeConcept
	}
	o := Order{Source: r.source(), Text: named.text(), Code: named.view(), Status: clean(r.Status), Date: day(r.AuthoredOn), Requester: clean(r.Request.Display)}
	// A code of CPT or HCPCS is more useful to a biller than another one before it.
	for _, system := range []string{cptSystem, hcpcsSystem} {
		if billed := named.code(system); billed.Code != "" {
			o.Code = &Code{System: billed.System, Code: clean(billed.Code), Display: clean(billed.Display)}
			break
		}
	}
	if r.Request.Identifier.System == npiSystem && validate.ValidNPI(r.Request.Identifier.Value) {
		o.RequesterNPI = r.Request.Identifier.Value
	}
	return o
}

func (r resource) coverage() Coverage {
	c := Coverage{
		Source: r.source(), MemberID: clean(r.SubscriberID), Status: clean(r.Status), Start: day(r.Period.Start), End: day(r.Period.End), Order: max(r.Order, 0),
	}
	if len(r.Payor) > 0 {
		payor := r.Payor[0]
		c.Payer, c.PayerCode = clean(payor.Display), clean(payor.Identifier.Value)
		var found organization
		if decode(r.contained(payor), &found) {
			c.Payer = cmp.Or(c.Payer, clean(found.Name))
			if len(found.Identifier) > 0 {
				c.PayerCode = cmp.Or(c.PayerCode, clean(found.Identifier[0].Value))
			}
		}
	}
	for _, class := range r.CoverClass {
		if class.Type.code("").Code == "group" && c.GroupNumber == "" {
			c.GroupNumber = clean(class.Value)
		}
	}
	switch code := r.Relationship.code("").Code; code {
	case "self", "spouse", "child":
		c.Relationship = code
	case "":
	default:
		c.Relationship = "other"
	}
	return c
}

func (r resource) allergy() Allergy {
	a := Allergy{
		Source: r.source(), Text: r.Code.text(), Code: r.Code.view(), Status: clean(r.Clinical.code("").Code), Criticality: clean(r.Criticality), Date: day(r.RecordedDate),
	}
	for _, reaction := range r.Reaction {
		if len(reaction.Manifestation) > 0 && a.Reaction == "" {
			a.Reaction = reaction.Manifestation[0].text()
		}
	}
	return a
}
