package fhir

import "encoding/json"

// The roles of what stands in the result of a search. Source: FHIR R4, value set search-entry-mode.
const (
	Match   = "match"
	Include = "include"
	Remark  = "outcome"
)

// Found is one entry of the result of a search.
type Found struct {
	URL      string // absolute; "" for none
	Resource json.RawMessage
	Mode     string
}

// Link is an address that belongs to a result: self, next.
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

// Searchset is the result of a search: a page, and, where that is known, how many match in all.
func Searchset(total *int, links []Link, found []Found) Resource {
	b := bundle{ResourceType: "Bundle", Type: "searchset", Total: total, Link: links}
	for _, f := range found {
		b.Entry = append(b.Entry, entry{f.URL, f.Resource, searchMode{f.Mode}})
	}
	return Resource{content: b}
}
