package sandbox

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// searchObservations answers a search by the parameters of the profile; others are ignored, with a hint.
func (e *EMR) searchObservations(w http.ResponseWriter, r *http.Request) {
	query, offered := r.URL.Query(), e.profile.Observation
	for _, name := range offered.Required {
		if !query.Has(name) {
			writeOutcome(w, http.StatusBadRequest, "required", "the search needs "+strings.Join(offered.Required, " and "))
			return
		}
	}
	var ignored []string
	for name := range query {
		if _, known := offered.Search[name]; !known {
			if !strings.HasPrefix(name, "_") {
				ignored = append(ignored, name)
			}
			delete(query, name)
		}
	}
	e.mu.Lock()
	found := e.observations
	if query.Has("identifier") {
		found = e.withIdentifier(parseToken(query.Get("identifier")))
	}
	found = slices.Clone(found)
	e.mu.Unlock()
	var matches []resource
	for _, stored := range found {
		var fields resource
		if err := decodeExactly(stored.Resource, &fields); err != nil {
			writeOutcome(w, http.StatusInternalServerError, "exception", "a stored Observation cannot be read")
			return
		}
		if stored.isIn(query, fields) {
			matches = append(matches, fields)
		}
	}
	slices.Sort(ignored)
	e.writeBundle(w, r, matches, ignored...)
}

// isIn reports whether an observation matches patient, category and date. Source: FHIR R4, search.html.
func (o *StoredObservation) isIn(query url.Values, fields resource) bool {
	if patient := strings.TrimPrefix(query.Get("patient"), "Patient/"); patient != "" && patient != o.Subject {
		return false
	}
	if wanted := query.Get("category"); wanted != "" && !slices.ContainsFunc(list(fields["category"]), func(category any) bool {
		return hasCoding(category, parseToken(wanted))
	}) {
		return false
	}
	at, err := time.Parse(time.RFC3339, o.Effective)
	for _, bound := range query["date"] {
		limit, unreadable := time.Parse(time.RFC3339, strings.TrimLeft(bound, "gelt"))
		switch {
		case err != nil || unreadable != nil:
			return false
		case strings.HasPrefix(bound, "ge") && at.Before(limit), strings.HasPrefix(bound, "le") && at.After(limit):
			return false
		}
	}
	return true
}

func list(value any) []any {
	items, _ := value.([]any)
	return items
}

// hasCoding reports whether a CodeableConcept has a code.
func hasCoding(concept any, wanted tokenParam) bool {
	fields, _ := concept.(resource)
	return slices.ContainsFunc(list(fields["coding"]), func(item any) bool {
		coding, _ := item.(resource)
		system, _ := coding["system"].(string)
		code, _ := coding["code"].(string)
		return wanted.matches(system, code)
	})
}

// hasIdentifier reports whether a resource has an identifier; those of its versions count, too.
func hasIdentifier(fields resource, wanted tokenParam) bool {
	return slices.ContainsFunc(append(list(fields["identifier"]), fields["masterIdentifier"]), func(item any) bool {
		identifier, _ := item.(resource)
		return wanted.matches(text(identifier["system"]), text(identifier["value"]))
	})
}
