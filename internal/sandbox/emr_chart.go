package sandbox

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// chartTypes are the resource types of a chart that the EMR serves, with the element that names the patient.
var chartTypes = map[string]string{
	"AllergyIntolerance": "patient", "Condition": "subject", "Coverage": "beneficiary", "DeviceRequest": "subject", "Encounter": "subject",
	"Medication": "", "MedicationRequest": "subject", "ServiceRequest": "subject",
}

// chartScopes are the scopes for reading charts that the EMR grants, of both versions of SMART.
func (e *EMR) chartScopes() (scopes []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.granted != nil {
		return e.granted
	}
	for resourceType := range chartTypes {
		scopes = append(scopes, "system/"+resourceType+".read", "system/"+resourceType+".rs")
	}
	slices.Sort(scopes)
	return scopes
}

// GrantChart limits the scopes for reading charts that the EMR grants from now on.
func (e *EMR) GrantChart(scopes ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.granted = append([]string{}, scopes...)
}

// AddChart adds a resource of a chart, or replaces the one with the same type and id.
func (e *EMR) AddChart(added map[string]any) error {
	kind, id := text(added["resourceType"]), text(added["id"])
	if _, known := chartTypes[kind]; !known || id == "" {
		return fmt.Errorf("the EMR sandbox serves no %s, or it has no id", kind)
	}
	e.RemoveChart(kind, id)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.chart = append(e.chart, added)
	return nil
}

// RemoveChart removes a resource of a chart.
func (e *EMR) RemoveChart(kind, id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.chart = slices.DeleteFunc(e.chart, func(r resource) bool { return r["resourceType"] == kind && r["id"] == id })
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

// withChartScope serves a known type of resource to a token with a scope for it.
func (e *EMR) withChartScope(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	kind := r.PathValue("type")
	if _, known := chartTypes[kind]; !known {
		writeOutcome(w, http.StatusNotFound, "not-supported", "no such resource, interaction or practice code")
		return
	}
	e.bearer([]string{"system/" + kind + ".read", "system/" + kind + ".rs", "system/*.read", "user/" + kind + ".read", "user/" + kind + ".rs"}, next)(w, r)
}

func (e *EMR) searchChart(w http.ResponseWriter, r *http.Request) {
	e.withChartScope(w, r, func(w http.ResponseWriter, r *http.Request) {
		kind, query := r.PathValue("type"), r.URL.Query()
		patient := strings.TrimPrefix(query.Get("patient"), "Patient/")
		if patient == "" {
			writeOutcome(w, http.StatusBadRequest, "required", "patient is missing")
			return
		}
		var matches []resource
		e.mu.Lock()
		e.stats.ChartReads++
		for _, found := range e.chart {
			of, _ := found[chartTypes[kind]].(resource)
			if found["resourceType"] == kind && text(of["reference"]) == "Patient/"+patient && hasIntent(found, query.Get("intent")) && begins(found, query.Get("date")) {
				matches = append(matches, found)
			}
		}
		e.mu.Unlock()
		e.writeBundle(w, r, matches)
	})
}

func hasIntent(r resource, intent string) bool { return intent == "" || r["intent"] == intent }

// begins reports whether an Encounter's period can reach a date of the form ge<date>.
func begins(r resource, date string) bool {
	from, isFrom := strings.CutPrefix(date, "ge")
	period, _ := r["period"].(resource)
	end := text(period["end"])
	return !isFrom || end == "" || end >= from
}

func (e *EMR) readChart(w http.ResponseWriter, r *http.Request) {
	e.withChartScope(w, r, func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		e.stats.ChartReads++
		at := slices.IndexFunc(e.chart, func(found resource) bool {
			return found["resourceType"] == r.PathValue("type") && found["id"] == r.PathValue("id")
		})
		var found resource
		if at >= 0 {
			found = e.chart[at]
		}
		e.mu.Unlock()
		if found == nil {
			writeOutcome(w, http.StatusNotFound, "not-found", "no such resource")
			return
		}
		writeJSON(w, http.StatusOK, fhirJSON, found)
	})
}
