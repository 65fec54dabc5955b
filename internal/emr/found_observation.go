package emr

import (
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
)

// foundObservation is the part of an Observation by which a copy is recognized.
type foundObservation struct {
	ResourceType string `json:"resourceType"`
	ID           string `json:"id"`
	Identifier   []struct {
		System string `json:"system"`
		Value  string `json:"value"`
	} `json:"identifier"`
	Category []codeable `json:"category"`
	Subject  struct {
		Reference string `json:"reference"`
	} `json:"subject"`
	Effective string `json:"effectiveDateTime"`
	Period    struct {
		Start string `json:"start"`
		End   string `json:"end"`
	} `json:"effectivePeriod"`
	Component []codedValue `json:"component"`

	codedValue

	raw json.RawMessage // for what is read of other types
}

// codedValue is a code with its value, of an Observation or a component.
type codedValue struct {
	Code             codeable         `json:"code"`
	ValueQuantity    *quantityOfFound `json:"valueQuantity"`
	ValueConcept     *codeable        `json:"valueCodeableConcept"`
	ValueBoolean     *bool            `json:"valueBoolean"`
	ValueInteger     *int             `json:"valueInteger"`
	DataAbsentReason *codeable        `json:"dataAbsentReason"`
}

type codeable struct {
	Coding []struct {
		System string `json:"system"`
		Code   string `json:"code"`
	} `json:"coding"`
}

type quantityOfFound struct {
	Value      float64 `json:"value"`
	Comparator string  `json:"comparator"`
	Unit       string  `json:"unit"`
	Code       string  `json:"code"`
}

// overlaps reports whether two concepts share a code.
func (c codeable) overlaps(other codeable) bool {
	for _, coding := range c.Coding {
		if coding.Code != "" && slices.Contains(other.Coding, coding) {
			return true
		}
	}
	return false
}

// equals reports whether code and value agree. Units are compared by code where both have one; numbers as an EMR may round them in storage.
func (v codedValue) equals(other codedValue) bool {
	if !v.Code.overlaps(other.Code) {
		return false
	}
	switch {
	case v.ValueQuantity != nil && other.ValueQuantity != nil:
		return v.ValueQuantity.equals(*other.ValueQuantity)
	case v.ValueConcept != nil && other.ValueConcept != nil:
		return v.ValueConcept.overlaps(*other.ValueConcept)
	case v.ValueBoolean != nil && other.ValueBoolean != nil:
		return *v.ValueBoolean == *other.ValueBoolean
	case v.ValueInteger != nil && other.ValueInteger != nil:
		return *v.ValueInteger == *other.ValueInteger
	}
	return !v.hasValue() && !other.hasValue()
}

func (v codedValue) hasValue() bool {
	return v.ValueQuantity != nil || v.ValueConcept != nil || v.ValueBoolean != nil || v.ValueInteger != nil
}

func (q quantityOfFound) equals(other quantityOfFound) bool {
	if q.Code != "" && other.Code != "" && q.Code != other.Code || (q.Code == "" || other.Code == "") && q.Unit != other.Unit {
		return false
	}
	return q.Comparator == other.Comparator && math.Abs(q.Value-other.Value) < 1e-6
}

// span returns the time of measurement, or the period, as a half-open span; ok is false when there is none. A date alone is a day in some zone.
func (o foundObservation) span() (from, to time.Time, ok bool) {
	start, end := o.Effective, o.Effective
	if start == "" {
		start, end = o.Period.Start, o.Period.End
	}
	from, _, fromOK := parsePartial(start)
	_, to, toOK := parsePartial(end)
	return from, to, fromOK && toOK
}

// parsePartial returns the span that a FHIR dateTime stands for.
func parsePartial(text string) (from, to time.Time, ok bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		at = at.UTC().Truncate(time.Second)
		return at, at.Add(time.Second), true
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.Add(-14 * time.Hour), day.Add((24 + 12) * time.Hour), true
	}
	return from, to, false
}

// sought is an observation that the EMR may have.
type sought struct {
	id       string // its UUID, the identifier
	query    string // of a search by content; "" without patient, category or time
	patient  string // the EMR's id
	from, to time.Time
	own      foundObservation
}

// searchMargin widens the searched span, since EMRs store times with less precision.
const searchMargin = time.Minute

// readSought reads what identifies a resource at the EMR. Source: US Core, Vital Signs: search by patient, category and date.
func readSought(id string, resource []byte) sought {
	o := sought{id: id}
	if json.Unmarshal(resource, &o.own) != nil {
		return o
	}
	from, to, ok := o.own.span()
	o.patient = referenceID(o.own.Subject.Reference)
	if !ok || o.patient == "" || len(o.own.Category) == 0 || len(o.own.Category[0].Coding) == 0 {
		return o
	}
	o.from, o.to = from.Add(-searchMargin), to.Add(searchMargin)
	o.query = url.Values{
		"patient": {o.patient}, "category": {o.own.Category[0].Coding[0].Code},
		"date": {"ge" + o.from.Format(time.RFC3339), "le" + o.to.Format(time.RFC3339)},
	}.Encode()
	return o
}

// keys are those of the search cache: of the search by identifier, and of that by content.
func (s sought) keys() []string {
	if s.query == "" {
		return []string{s.id}
	}
	return []string{s.id, s.query}
}

// hasIdentifier reports whether a result carries the observation's identifier.
func (s sought) hasIdentifier(r foundObservation) bool {
	for _, id := range r.Identifier {
		if id.System == identifierSystem && strings.EqualFold(id.Value, identifierPrefix+s.id) {
			return true
		}
	}
	return false
}

// matches reports whether a result is the observation by its content: patient, time, code, value and every component agree. With isPart it may
// lack components, for a reading that was completed since. One with the identifier of another observation is that observation's.
func (s sought) matches(r foundObservation, isPart bool) bool {
	if s.hasIdentifier(r) {
		return true
	}
	if r.hasVigilIdentifier() {
		return false
	}
	from, to, ok := r.span()
	ownFrom, ownTo, _ := s.own.span()
	if !ok || !from.Equal(ownFrom) || !to.Equal(ownTo) || referenceID(r.Subject.Reference) != s.patient || !s.own.equals(r.codedValue) {
		return false
	}
	if len(r.Component) > len(s.own.Component) || !isPart && len(r.Component) != len(s.own.Component) {
		return false
	}
	for _, component := range r.Component {
		if !slices.ContainsFunc(s.own.Component, component.equals) {
			return false
		}
	}
	return true
}

// hasVigilIdentifier reports whether a result carries the identifier of any of Vigil's observations.
func (o foundObservation) hasVigilIdentifier() bool {
	for _, id := range o.Identifier {
		if id.System == identifierSystem && strings.HasPrefix(strings.ToLower(id.Value), identifierPrefix) {
			return true
		}
	}
	return false
}

// isOutside reports a result of another patient or time, which shows that the EMR ignored a parameter.
func (s sought) isOutside(r foundObservation) bool {
	if of := referenceID(r.Subject.Reference); of != "" && of != s.patient {
		return true
	}
	from, to, ok := r.span()
	return ok && (to.Before(s.from) || from.After(s.to))
}

// referenceID returns the id of a reference to a patient, relative or absolute; "" for another form.
func referenceID(reference string) string {
	segments := strings.Split(reference, "/")
	n := len(segments)
	if n < 2 || segments[n-2] != "Patient" {
		return ""
	}
	return segments[n-1]
}

// foundPage is one page of a search for Observations.
type foundPage struct {
	observations []foundObservation
	next, self   string // links; "" without
	isRefused    bool   // the EMR states that it did not understand a parameter
}

// readFoundPage reads a page with resources of a type; ok is false for anything but a Bundle.
func readFoundPage(body []byte, resourceType string) (page foundPage, ok bool) {
	var bundle struct {
		ResourceType string `json:"resourceType"`
		Link         []struct {
			Relation string `json:"relation"`
			URL      string `json:"url"`
		} `json:"link"`
		Entry []struct {
			Resource json.RawMessage `json:"resource"`
		} `json:"entry"`
	}
	if json.Unmarshal(body, &bundle) != nil || bundle.ResourceType != "Bundle" {
		return page, false
	}
	for _, link := range bundle.Link {
		switch link.Relation {
		case "next":
			page.next = link.URL
		case "self":
			page.self = link.URL
		}
	}
	for _, entry := range bundle.Entry {
		var r foundObservation
		_ = json.Unmarshal(entry.Resource, &r) // a member of an unexpected form leaves what could be read
		switch {
		case r.ResourceType == resourceType && fhirID.MatchString(r.ID):
			r.raw = entry.Resource
			page.observations = append(page.observations, r)
		case r.ResourceType == "OperationOutcome":
			page.isRefused = page.isRefused || refusesParameter(entry.Resource)
		}
	}
	return page, true
}

// refusesParameter reports whether an OperationOutcome states that a parameter was not understood. EMRs also add hints, such as that nothing was
// found. Source: FHIR R4, search.html, "Handling Errors".
func refusesParameter(outcome []byte) bool {
	var of struct {
		Issue []struct {
			Severity    string `json:"severity"`
			Code        string `json:"code"`
			Diagnostics string `json:"diagnostics"`
			Details     struct {
				Text string `json:"text"`
			} `json:"details"`
		} `json:"issue"`
	}
	if json.Unmarshal(outcome, &of) != nil {
		return true
	}
	for _, issue := range of.Issue {
		words := strings.ToLower(issue.Diagnostics + " " + issue.Details.Text)
		if issue.Severity == "error" || issue.Severity == "fatal" || slices.Contains([]string{"not-supported", "invalid", "value"}, issue.Code) ||
			strings.Contains(words, "parameter") || strings.Contains(words, "not supported") || strings.Contains(words, "ignored") {
			return true
		}
	}
	return false
}

// hasIgnored reports whether the EMR states that it did not use the parameter: in an OperationOutcome, or in the address that it answered. "" looks
// at the former alone. Source: FHIR R4, search.html, "Server Conformance".
func (p foundPage) hasIgnored(resourceType, parameter string) bool {
	if p.isRefused || parameter == "" || p.self == "" {
		return p.isRefused
	}
	self, err := url.Parse(p.self)
	return err == nil && strings.HasSuffix(self.Path, "/"+resourceType) && !self.Query().Has(parameter)
}
