package fhir

import "strings"

// CodeSystemValues are the content of a CodeSystem of Vigil's own codes.
type CodeSystemValues struct {
	ID, Title, Description string
	Codes                  []string
}

// ownSystem is the prefix of the names of Vigil's own systems.
const ownSystem = "urn:rpm:"

// URL returns the name of the system in codings.
func (v CodeSystemValues) URL() string { return ownSystem + v.ID }

type (
	codeDefinition struct {
		Code    string `json:"code"`
		Display string `json:"display"`
	}
	codeSystem struct {
		ResourceType  string           `json:"resourceType"`
		ID            string           `json:"id"`
		URL           string           `json:"url"`
		Name          string           `json:"name"`
		Title         string           `json:"title"`
		Status        string           `json:"status"`
		Experimental  bool             `json:"experimental"`
		Publisher     string           `json:"publisher"`
		Description   string           `json:"description"`
		CaseSensitive bool             `json:"caseSensitive"`
		Content       string           `json:"content"`
		Count         int              `json:"count"`
		Concept       []codeDefinition `json:"concept"`
	}
)

// CodeSystem returns a system of codes. Source: FHIR R4, CodeSystem.
func CodeSystem(v CodeSystemValues) Resource {
	r := codeSystem{
		ResourceType: "CodeSystem", ID: v.ID, URL: v.URL(), Name: strings.ReplaceAll(titled(v.ID, "-"), " ", ""), Title: v.Title, Status: "active",
		Publisher: "Vigil", Description: v.Description, CaseSensitive: true, Content: "complete", Count: len(v.Codes),
	}
	for _, code := range v.Codes {
		r.Concept = append(r.Concept, codeDefinition{code, titled(code, "_")})
	}
	return Resource{content: r}
}

// titled returns the words of a code with capitals.
func titled(code, separator string) string {
	words := strings.Split(code, separator)
	for i, word := range words {
		if word != "" {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, " ")
}
