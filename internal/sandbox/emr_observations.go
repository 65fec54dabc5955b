package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// StoredObservation is a stored Observation.
type StoredObservation struct {
	ID         string    `json:"id"`
	Identifier string    `json:"identifier"` // system|value of the first identifier, or empty
	Subject    string    `json:"subject"`    // the patient's id in the EMR
	Code       string    `json:"code"`       // the first coding's code
	Effective  string    `json:"effective"`
	ReceivedAt time.Time `json:"received_at"`
	// Status is the Observation's; Versions is how often it was written, from 1.
	Status   string `json:"status"`
	Versions int    `json:"versions"`
	// Creates is how many observations were stored under this identifier: 1 is right.
	Creates int `json:"creates"`
	// Resource is the Observation as the EMR returns it.
	Resource json.RawMessage `json:"-"`

	identifiers []tokenParam
}

// observationBody is the part of a received Observation that the EMR checks.
type observationBody struct {
	ResourceType string `json:"resourceType"`
	Status       string `json:"status"`
	Identifier   []struct{ System, Value string }
	Code         struct {
		Coding []struct{ System, Code string }
		Text   string
	}
	Subject   struct{ Reference string }
	Effective string                      `json:"effectiveDateTime"`
	Period    struct{ Start, End string } `json:"effectivePeriod"`
	Value     *struct {
		Value *float64
	} `json:"valueQuantity"`
	Component []json.RawMessage
}

var observationStatuses = []string{"registered", "preliminary", "final", "amended", "corrected", "cancelled", "entered-in-error", "unknown"}

func (e *EMR) createObservation(w http.ResponseWriter, r *http.Request) {
	fields, observation, problem := readIncoming(w, r)
	var condition *tokenParam
	if header := r.Header.Get("If-None-Exist"); problem == nil && header != "" && e.profile.Observation.ConditionalCreate {
		token, unusable := identifierQuery(header)
		condition, problem = &token, unusable
	}
	if problem == nil {
		problem = observation.check()
	}
	var stored StoredObservation
	var created bool
	if problem == nil {
		stored, created, problem = e.store(fields, observation, condition)
	}
	if problem != nil {
		e.count(func(s *EMRStats) { s.Refused++ })
		problem.write(w)
		return
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		if e.options.OnObservation != nil {
			e.options.OnObservation(stored)
		}
	}
	w.Header().Set("Location", fmt.Sprintf("%s/Observation/%s/_history/%d", e.fhirBase(r), stored.ID, stored.Versions))
	writeVersion(w, status, stored)
}

func writeVersion(w http.ResponseWriter, status int, stored StoredObservation) {
	w.Header().Set("ETag", fmt.Sprintf(`W/"%d"`, stored.Versions))
	w.Header().Set("Last-Modified", stored.ReceivedAt.UTC().Format(http.TimeFormat))
	writeJSON(w, status, fhirJSON, stored.Resource)
}

// readIncoming decodes an Observation twice: completely, to store it, and into the fields that the EMR checks.
func readIncoming(w http.ResponseWriter, r *http.Request) (resource, observationBody, *fhirError) {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !slices.Contains([]string{fhirJSON, "application/json"}, mediaType) {
		return nil, observationBody{}, &fhirError{http.StatusUnsupportedMediaType, "not-supported", "Content-Type is not " + fhirJSON}
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, observationBody{}, &fhirError{http.StatusRequestEntityTooLarge, "too-long", "the body is too large"}
	}
	var fields resource
	var observation observationBody
	if err != nil || json.Unmarshal(raw, &observation) != nil || decodeExactly(raw, &fields) != nil || fields == nil {
		return nil, observationBody{}, &fhirError{http.StatusBadRequest, "structure", "the body is not an Observation in JSON"}
	}
	if path := emptyPart(fields, observation.ResourceType); path != "" {
		return nil, observationBody{}, &fhirError{http.StatusBadRequest, "structure", path + " is empty or null, which FHIR JSON does not allow"}
	}
	return fields, observation, nil
}

// decodeExactly keeps numbers as written: in FHIR the digits of a decimal carry its precision.
func decodeExactly(raw []byte, fields *resource) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(fields)
}

// emptyPart finds a null, an empty string, an empty list or an empty object. Source: FHIR R4, json.html.
func emptyPart(value any, path string) string {
	switch v := value.(type) {
	case nil:
		return path
	case string:
		if v == "" {
			return path
		}
	case []any:
		if len(v) == 0 {
			return path
		}
		for i, item := range v {
			if found := emptyPart(item, fmt.Sprintf("%s[%d]", path, i)); found != "" {
				return found
			}
		}
	case map[string]any:
		if len(v) == 0 {
			return path
		}
		for name, item := range v {
			if found := emptyPart(item, path+"."+name); found != "" {
				return found
			}
		}
	}
	return ""
}

// check validates an Observation against R4 and the vital-signs profile.
func (o observationBody) check() *fhirError {
	_, timeErr := time.Parse(time.RFC3339, o.effective())
	coded := slices.ContainsFunc(o.Code.Coding, func(c struct{ System, Code string }) bool { return c.System != "" && c.Code != "" })
	switch {
	case o.ResourceType != "Observation":
		return &fhirError{http.StatusBadRequest, "structure", "resourceType is not Observation"}
	case !slices.Contains(observationStatuses, o.Status):
		return unprocessable("code-invalid", "Observation.status is missing or not an ObservationStatus")
	case !coded:
		return unprocessable("required", "Observation.code needs a coding with system and code")
	case !strings.HasPrefix(o.Subject.Reference, "Patient/"):
		return unprocessable("required", "Observation.subject must reference a Patient")
	case timeErr != nil:
		return unprocessable("value", "Observation.effectiveDateTime is missing or not a dateTime with seconds and zone")
	case (o.Value == nil || o.Value.Value == nil) && len(o.Component) == 0:
		return unprocessable("required", "Observation needs a valueQuantity or a component")
	}
	return nil
}

// effective returns the time of observation, or its start.
func (o observationBody) effective() string { return cmp.Or(o.Effective, o.Period.Start) }

// store stores an Observation unless the condition matches a stored one. Both happen under one lock, so the conditional create is
// exactly-once. Source: FHIR R4, http.html, "Conditional create".
func (e *EMR) store(fields resource, observation observationBody, condition *tokenParam) (StoredObservation, bool, *fhirError) {
	e.mu.Lock()
	defer e.mu.Unlock()
	subject := strings.TrimPrefix(observation.Subject.Reference, "Patient/")
	if problem := e.checkSubject(subject); problem != nil {
		return StoredObservation{}, false, problem
	}
	if condition != nil {
		switch matches := e.withIdentifier(*condition); len(matches) {
		case 0:
		case 1:
			e.stats.Repeated++
			return e.countedCreates(matches[0]), false, nil
		default:
			return StoredObservation{}, false, &fhirError{http.StatusPreconditionFailed, "multiple-matches", "If-None-Exist matches more than one Observation"}
		}
	}
	now := e.options.Now().UTC()
	stored, problem := e.write(fields, observation, fmt.Sprintf("obs-%06d", len(e.observations)+1), 1, now)
	if problem != nil {
		return StoredObservation{}, false, problem
	}
	e.stats.Created++
	return e.countedCreates(stored), true, nil
}

// write stores a version of an Observation under an id. The caller holds the lock.
func (e *EMR) write(fields resource, observation observationBody, id string, version int, now time.Time) (*StoredObservation, *fhirError) {
	fields["id"] = id
	meta, _ := fields["meta"].(map[string]any)
	if meta == nil {
		meta = resource{}
	}
	meta["versionId"], meta["lastUpdated"] = strconv.Itoa(version), instant(now)
	fields["meta"] = meta
	if !e.profile.Observation.KeepsIdentifiers {
		delete(fields, "identifier")
	}
	raw, err := json.Marshal(fields)
	if err == nil {
		err = e.journal.append(journalLine{ReceivedAt: now, Resource: raw})
	}
	if err != nil {
		return nil, &fhirError{http.StatusInternalServerError, "exception", err.Error()}
	}
	return e.addVersion(id, observation, raw, now), nil
}

// addVersion adds an Observation, or a version of a stored one, to memory. The caller holds the lock.
func (e *EMR) addVersion(id string, observation observationBody, raw json.RawMessage, at time.Time) *StoredObservation {
	if existing := e.byID[id]; existing != nil {
		existing.Subject, existing.Effective = strings.TrimPrefix(observation.Subject.Reference, "Patient/"), observation.effective()
		existing.Code, existing.Status, existing.Resource, existing.Versions = observation.Code.Coding[0].Code, observation.Status, raw, existing.Versions+1
		return existing
	}
	stored := &StoredObservation{
		ID:         id,
		Status:     observation.Status,
		Versions:   1,
		Subject:    strings.TrimPrefix(observation.Subject.Reference, "Patient/"),
		Code:       observation.Code.Coding[0].Code,
		Effective:  observation.effective(),
		ReceivedAt: at,
		Resource:   raw,
	}
	if len(observation.Identifier) > 0 {
		stored.Identifier = observation.Identifier[0].System + "|" + observation.Identifier[0].Value
	}
	for _, identifier := range observation.Identifier {
		stored.identifiers = append(stored.identifiers, tokenParam{system: identifier.System, value: identifier.Value})
		e.byIdentifier[identifier.Value] = append(e.byIdentifier[identifier.Value], stored)
	}
	e.observations, e.byID[id] = append(e.observations, stored), stored
	return stored
}

// withIdentifier finds stored Observations. The caller holds the lock.
func (e *EMR) withIdentifier(wanted tokenParam) []*StoredObservation {
	candidates := e.observations
	if wanted.value != "" {
		candidates = e.byIdentifier[wanted.value]
	}
	var found []*StoredObservation
	for _, stored := range candidates {
		if slices.ContainsFunc(stored.identifiers, func(has tokenParam) bool { return wanted.matches(has.system, has.value) }) {
			found = append(found, stored)
		}
	}
	return found
}

// countedCreates returns a copy with the number of Observations of its identifier. The caller holds the lock.
func (e *EMR) countedCreates(stored *StoredObservation) StoredObservation {
	seen := *stored
	if len(stored.identifiers) > 0 {
		seen.Creates = len(e.withIdentifier(stored.identifiers[0]))
	}
	return seen
}

func (e *EMR) readObservation(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	var stored StoredObservation
	version := e.byID[r.PathValue("id")]
	if version != nil {
		stored = *version
	}
	e.mu.Unlock()
	if version == nil {
		writeOutcome(w, http.StatusNotFound, "not-found", "no such Observation")
		return
	}
	writeVersion(w, http.StatusOK, stored)
}

// updateObservation stores a new version. An id that the EMR did not assign is rejected. Source: FHIR R4, http.html, "update".
func (e *EMR) updateObservation(w http.ResponseWriter, r *http.Request) {
	fields, observation, problem := readIncoming(w, r)
	id := r.PathValue("id")
	if problem == nil && fields["id"] != id {
		problem = &fhirError{http.StatusBadRequest, "invalid", "the resource's id is not the one of the address"}
	}
	if problem == nil {
		problem = observation.check()
	}
	var stored StoredObservation
	if problem == nil {
		stored, problem = e.replace(id, r.Header.Get("If-Match"), fields, observation)
	}
	if problem != nil {
		e.count(func(s *EMRStats) { s.Refused++ })
		problem.write(w)
		return
	}
	w.Header().Set("Location", fmt.Sprintf("%s/Observation/%s/_history/%d", e.fhirBase(r), stored.ID, stored.Versions))
	writeVersion(w, http.StatusOK, stored)
}

// replace stores a new version, of the expected version if one is given. The patient of an Observation cannot change.
func (e *EMR) replace(id, expected string, fields resource, observation observationBody) (StoredObservation, *fhirError) {
	e.mu.Lock()
	defer e.mu.Unlock()
	stored := e.byID[id]
	switch {
	case stored == nil:
		return StoredObservation{}, &fhirError{http.StatusMethodNotAllowed, "not-supported", "ids are given by this server"}
	case expected != "" && expected != fmt.Sprintf(`W/"%d"`, stored.Versions) && e.options.LikeHAPI:
		return StoredObservation{}, &fhirError{http.StatusConflict, "processing", "the resource has another version"}
	case expected != "" && expected != fmt.Sprintf(`W/"%d"`, stored.Versions):
		return StoredObservation{}, &fhirError{http.StatusPreconditionFailed, "conflict", "the resource has another version"}
	case stored.Subject != strings.TrimPrefix(observation.Subject.Reference, "Patient/"):
		return StoredObservation{}, unprocessable("business-rule", "an Observation does not change its patient")
	}
	stored, problem := e.write(fields, observation, id, stored.Versions+1, e.options.Now().UTC())
	if problem != nil {
		return StoredObservation{}, problem
	}
	e.stats.Updated++
	return e.countedCreates(stored), nil
}
