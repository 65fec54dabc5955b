package sandbox

import (
	"fmt"
	"net/http"
	"strings"
)

// updateObservation puts a version in the place of the one before. An id that the EMR did not give is none it takes.
// Source: FHIR R4, http.html, "update".
func (e *EMR) updateObservation(w http.ResponseWriter, r *http.Request) {
	fields, observation, problem := readIncoming(w, r)
	id := r.PathValue("id")
	if problem == nil && fields["id"] != id {
		problem = &refusal{http.StatusBadRequest, "invalid", "the resource's id is not the one of the address"}
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

// replace keeps a new version, of the version that is expected if one is. An Observation stays its patient's.
func (e *EMR) replace(id, expected string, fields resource, observation incoming) (StoredObservation, *refusal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.byID[id]
	switch {
	case known == nil:
		return StoredObservation{}, &refusal{http.StatusMethodNotAllowed, "not-supported", "ids are given by this server"}
	case expected != "" && expected != fmt.Sprintf(`W/"%d"`, known.Versions) && e.options.LikeHAPI:
		return StoredObservation{}, &refusal{http.StatusConflict, "processing", "the resource has another version"}
	case expected != "" && expected != fmt.Sprintf(`W/"%d"`, known.Versions):
		return StoredObservation{}, &refusal{http.StatusPreconditionFailed, "conflict", "the resource has another version"}
	case known.Subject != strings.TrimPrefix(observation.Subject.Reference, "Patient/"):
		return StoredObservation{}, unprocessable("business-rule", "an Observation does not change its patient")
	}
	stored, problem := e.write(fields, observation, id, known.Versions+1, e.options.Now().UTC())
	if problem != nil {
		return StoredObservation{}, problem
	}
	e.stats.Updated++
	return e.withCreates(stored), nil
}
