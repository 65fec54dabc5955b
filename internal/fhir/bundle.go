package fhir

import "encoding/json"

// The modes of search entries. Source: FHIR R4, value set search-entry-mode.
const (
	ModeMatch   = "match"
	ModeInclude = "include"
	ModeOutcome = "outcome"
)

// SearchEntry is one entry of a search result.
type SearchEntry struct {
	URL      string // absolute; "" for none
	Resource json.RawMessage
	Mode     string
}

// Link is a URL of a search result, with relation self or next.
type Link struct {
	Relation string `json:"relation"`
	URL      string `json:"url"`
}

type (
	searchMode struct {
		Mode string `json:"mode"`
	}
	entry struct {
		FullURL  string          `json:"fullUrl,omitempty"`
		Resource json.RawMessage `json:"resource"`
		Search   searchMode      `json:"search"`
	}
	bundle struct {
		ResourceType string  `json:"resourceType"`
		Type         string  `json:"type"`
		Total        *int    `json:"total,omitempty"`
		Link         []Link  `json:"link"`
		Entry        []entry `json:"entry,omitempty"`
	}
)

// Searchset returns one page of a search result. total is the number of all matches; nil if unknown.
func Searchset(total *int, links []Link, found []SearchEntry) Resource {
	b := bundle{ResourceType: "Bundle", Type: "searchset", Total: total, Link: links}
	for _, f := range found {
		b.Entry = append(b.Entry, entry{f.URL, f.Resource, searchMode{f.Mode}})
	}
	return Resource{content: b}
}
