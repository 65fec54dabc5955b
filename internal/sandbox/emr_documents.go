package sandbox

import (
	"crypto/sha1" //nolint:gosec // FHIR R4 prescribes it: Attachment.hash
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Documents returns the stored DocumentReferences, oldest first.
func (e *EMR) Documents() []map[string]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.documents)
}

// readIncomingDocument reads and checks a DocumentReference.
func (e *EMR) readIncomingDocument(w http.ResponseWriter, r *http.Request) (fields resource, problem *fhirError) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &fhirError{http.StatusRequestEntityTooLarge, "too-long", "the body is too large"}
	}
	if err != nil || decodeExactly(raw, &fields) != nil || fields["resourceType"] != "DocumentReference" {
		return nil, &fhirError{http.StatusBadRequest, "structure", "the body is not a DocumentReference in JSON"}
	}
	if path := emptyPart(fields, "DocumentReference"); path != "" {
		return nil, &fhirError{http.StatusBadRequest, "structure", path + " is empty or null, which FHIR JSON does not allow"}
	}
	attachment := attachmentOf(fields)
	pdf, err := base64.StdEncoding.DecodeString(text(attachment["data"]))
	sum := sha1.Sum(pdf) //nolint:gosec // prescribed
	subject, _ := fields["subject"].(resource)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil || !strings.HasPrefix(string(pdf), "%PDF-") || text(attachment["contentType"]) != "application/pdf":
		return nil, unprocessable("value", "content is no PDF")
	case text(attachment["hash"]) != base64.StdEncoding.EncodeToString(sum[:]):
		return nil, unprocessable("value", "hash is not the SHA-1 of the data")
	case text(fields["status"]) == "" || fields["type"] == nil || fields["category"] == nil:
		return nil, unprocessable("required", "status, type or category is missing")
	}
	return fields, e.checkSubject(strings.TrimPrefix(text(subject["reference"]), "Patient/"))
}

func attachmentOf(fields resource) resource {
	for _, content := range list(fields["content"]) {
		part, _ := content.(resource)
		attachment, _ := part["attachment"].(resource)
		return attachment
	}
	return resource{}
}

func (e *EMR) createDocument(w http.ResponseWriter, r *http.Request) {
	fields, problem := e.readIncomingDocument(w, r)
	if problem != nil {
		e.count(func(s *EMRStats) { s.Refused++ })
		problem.write(w)
		return
	}
	e.mu.Lock()
	id := fmt.Sprintf("doc-%06d", len(e.documents)+1)
	e.storeDocument(fields, id)
	e.stats.Created++
	e.mu.Unlock()
	w.Header().Set("Location", e.fhirBase(r)+"/DocumentReference/"+id)
	writeJSON(w, http.StatusCreated, fhirJSON, fields)
}

// storeDocument stores a document under an id. The caller holds the lock.
func (e *EMR) storeDocument(fields resource, id string) {
	fields["id"] = id
	if !e.profile.DocumentReference.KeepsIdentifiers {
		delete(fields, "identifier")
		delete(fields, "masterIdentifier")
	}
	at := slices.IndexFunc(e.documents, func(d resource) bool { return d["id"] == id })
	if at >= 0 {
		e.documents[at] = fields
		return
	}
	e.documents = append(e.documents, fields)
}

func (e *EMR) updateDocument(w http.ResponseWriter, r *http.Request) {
	fields, problem := e.readIncomingDocument(w, r)
	e.mu.Lock()
	defer e.mu.Unlock()
	id := r.PathValue("id")
	if problem == nil && !slices.ContainsFunc(e.documents, func(d resource) bool { return d["id"] == id }) {
		problem = &fhirError{http.StatusMethodNotAllowed, "not-supported", "ids are given by this server"}
	}
	if problem != nil {
		e.stats.Refused++
		problem.write(w)
		return
	}
	e.storeDocument(fields, id)
	e.stats.Updated++
	writeJSON(w, http.StatusOK, fhirJSON, fields)
}

func (e *EMR) readDocument(w http.ResponseWriter, r *http.Request) {
	for _, d := range e.Documents() {
		if d["id"] == r.PathValue("id") {
			writeJSON(w, http.StatusOK, fhirJSON, d)
			return
		}
	}
	writeOutcome(w, http.StatusNotFound, "not-found", "no such DocumentReference")
}

// searchDocuments answers a search by identifier, patient, category, type and the least date, as far as the profile offers them.
func (e *EMR) searchDocuments(w http.ResponseWriter, r *http.Request) {
	query := maps.Clone(r.URL.Query())
	var ignored []string
	for name := range query {
		if _, known := e.profile.DocumentReference.Search[name]; !known && !strings.HasPrefix(name, "_") {
			ignored = append(ignored, name)
			query.Del(name)
		}
	}
	var matches []resource
	for _, d := range e.Documents() {
		subject, _ := d["subject"].(resource)
		made, _ := time.Parse(time.RFC3339, text(d["date"]))
		since, _ := time.Parse(time.RFC3339, strings.TrimPrefix(query.Get("date"), "ge"))
		isOther := query.Has("patient") && text(subject["reference"]) != "Patient/"+query.Get("patient") || made.Before(since) ||
			query.Has("identifier") && !hasIdentifier(d, parseToken(query.Get("identifier"))) || query.Has("type") && !hasCoding(d["type"], parseToken(query.Get("type"))) ||
			query.Has("category") && !slices.ContainsFunc(list(d["category"]), func(c any) bool { return hasCoding(c, parseToken(query.Get("category"))) })
		if !isOther {
			matches = append(matches, d)
		}
	}
	slices.Sort(ignored)
	e.writeBundle(w, r, matches, ignored...)
}
