package sandbox

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
)

// The profiles are what published CapabilityStatements of EMRs offer, in short.
//
//go:embed profiles/*.json
var profileFiles embed.FS

// defaultProfile accepts every interaction.
const defaultProfile = "everything"

// emrProfile is what an EMR declares in its CapabilityStatement, and how it behaves.
type emrProfile struct {
	Patient           offered  `json:"patient"`
	Observation       offered  `json:"observation"`
	DocumentReference *offered `json:"document_reference"`
}

// offered is what an EMR declares for one resource type.
type offered struct {
	Interactions []string          `json:"interactions"`
	Search       map[string]string `json:"search"` // types of the search parameters by name; others are ignored
	Required     []string          `json:"required"`
	// ConditionalCreate: without it If-None-Exist is ignored. KeepsIdentifiers: without it, identifiers are not stored.
	ConditionalCreate bool `json:"conditional_create"`
	KeepsIdentifiers  bool `json:"keeps_identifiers"`
}

// EMRProfiles returns the names of the profiles, sorted.
func EMRProfiles() (names []string) {
	files, _ := profileFiles.ReadDir("profiles") // embedded
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file.Name(), ".json"))
	}
	return names
}

func readProfile(name string) (p emrProfile, err error) {
	raw, err := profileFiles.ReadFile(path.Join("profiles", name+".json"))
	if err != nil {
		return p, fmt.Errorf("profile is one of %s", strings.Join(EMRProfiles(), ", "))
	}
	return p, json.Unmarshal(raw, &p)
}

// describe returns the entry of a CapabilityStatement.
func (o offered) describe(resourceType string) resource {
	entry := resource{"type": resourceType}
	var interactions, parameters []resource
	for _, code := range o.Interactions {
		interactions = append(interactions, resource{"code": code})
	}
	for _, name := range slices.Sorted(maps.Keys(o.Search)) {
		parameters = append(parameters, resource{"name": name, "type": o.Search[name]})
	}
	entry["interaction"], entry["searchParam"] = interactions, parameters
	if o.ConditionalCreate {
		entry["conditionalCreate"] = true
	}
	return entry
}

// offersDocuments lets a request through if the EMR offers the interaction on DocumentReferences.
func (e *EMR) offersDocuments(interaction string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if o := e.profile.DocumentReference; o == nil || !slices.Contains(o.Interactions, interaction) {
			writeOutcome(w, http.StatusMethodNotAllowed, "not-supported", "this server does not offer "+interaction+" of DocumentReference")
			return
		}
		next(w, r)
	}
}

// offers lets a request through if the EMR offers the interaction on Observations.
func (e *EMR) offers(interaction string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(e.profile.Observation.Interactions, interaction) {
			e.count(func(s *EMRStats) { s.Refused++ })
			writeOutcome(w, http.StatusMethodNotAllowed, "not-supported", "this server does not offer "+interaction+" of Observation")
			return
		}
		next(w, r)
	}
}
