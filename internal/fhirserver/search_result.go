package fhirserver

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Result is the result of a search.
type Result struct {
	Rows []Row
	// Total is the number of matches; nil if they were not counted.
	Total *int
	// Next is the position of the next page; nil if there is none.
	Next *Position
}

// Search returns a page and, if requested or cheap, the total number of matches.
func (e *Engine) Search(app core.App, s *Search) (r Result, err error) {
	if !s.CountOnly {
		var last Position
		var done bool
		if r.Rows, last, done, err = e.Page(app, s); err != nil {
			return r, err
		}
		if !done {
			r.Next = &last
		} else if s.After.ID == "" && s.Total != "none" {
			r.Total = new(len(r.Rows))
			return r, nil
		}
	}
	if s.CountOnly || s.Total == "accurate" || s.Total == "estimate" || s.Total == "" && s.IsCheapToCount() {
		total, err := e.Count(app, s)
		if err != nil {
			return r, err
		}
		r.Total = &total
	}
	return r, nil
}

// LastN returns the newest readings of each kind, at most the given number, that match a search of one patient. It omits readings entered in error unless
// includeRetracted is set. Source: FHIR R4, Observation, "$lastn".
func (e *Engine) LastN(app core.App, s *Search, limit int, includeRetracted bool) (r Result, err error) {
	for _, d := range vitals.Definitions {
		one := *s
		one.where = slices.Clone(s.where)
		one.filterKinds([]string{string(d.Kind)})
		if !includeRetracted {
			one.where = append(one.where, s.Type.table.AnyOf(collections.ByStatus, []string{collections.StatusFinal, collections.StatusSuspect}))
		}
		one.Limit, one.Order, one.After = limit, nil, Position{}
		rows, _, _, err := e.Page(app, &one)
		if err != nil {
			return r, err
		}
		r.Rows = append(r.Rows, rows...)
	}
	r.Total = new(len(r.Rows))
	return r, nil
}

// LoadIncludes returns the resources that _include and _revinclude request for rows. Types that may does not permit are returned as withheld.
func (e *Engine) LoadIncludes(app core.App, s *Search, rows []Row, may func(*ResourceType) bool) (included map[*ResourceType][]Row, withheld []*ResourceType, err error) {
	included = map[*ResourceType][]Row{}
	add := func(k *ResourceType, ids []string) error {
		switch {
		case len(ids) == 0:
			return nil
		case !may(k):
			withheld = append(withheld, k)
			return nil
		}
		found := NewSearch(k, s.Reader)
		found.FilterIDs(ids...)
		found.Limit = len(ids)
		found.SortByID()
		found.ctx = s.ctx
		included[k], _, _, err = e.Page(app, found)
		return err
	}
	for _, include := range []struct {
		requested bool
		of        *ResourceType
		id        func(Row) string
	}{
		{slices.Contains(s.Include, "Observation:subject") || slices.Contains(s.Include, "Observation:patient"), patientType, func(r Row) string { return r.PatientID }},
		{slices.Contains(s.Include, "Observation:device"), deviceType, func(r Row) string { return r.DeviceID }},
		{slices.Contains(s.RevInclude, "Provenance:target") && s.Type == observationType, provenanceType, func(r Row) string { return r.ID }},
	} {
		if include.requested {
			if err := add(include.of, distinctValues(rows, include.id)); err != nil {
				return nil, nil, err
			}
		}
	}
	return included, withheld, nil
}

// distinctValues returns the distinct values of rows without "".
func distinctValues(rows []Row, value func(Row) string) (list []string) {
	known := map[string]bool{"": true}
	for _, row := range rows {
		if v := value(row); !known[v] {
			known[v], list = true, append(list, v)
		}
	}
	return list
}

// PageParam is the only query parameter of a next-page URL. It holds the sealed search and position, so that names from a search body do not appear in
// a URL.
const PageParam = "_page"

// cursor is the content of a page parameter.
type cursor struct {
	Type  string `json:"t"`
	Query string `json:"q"`
	Value string `json:"v"`
	ID    string `json:"i"`
}

// cursorPurpose is bound into the sealed cursor.
const cursorPurpose = "fhir.page"

// maxQueryLength bounds the parameters of a search with further pages, since the next-page URL has to hold them.
const maxQueryLength = 4 << 10

// NextPage returns the value of PageParam for the page after a position.
func NextPage(k *ResourceType, understood url.Values, last Position) (string, error) {
	query := understood.Encode()
	if len(query) > maxQueryLength {
		return "", fault.New(fault.Invalid, CodeTooLong, "There are more pages, and the parameters are too long for a page URL. Shorten the search, or raise _count.")
	}
	plain, err := json.Marshal(cursor{k.Type, query, last.Value, last.ID})
	if err != nil {
		return "", err
	}
	sealed, err := collections.Seal(string(plain), cursorPurpose, k.Type)
	return strings.ReplaceAll(sealed, ":", "~"), err // a tilde needs no escaping in a URL
}

// OpenPage returns the search and the position in a value of PageParam.
func OpenPage(k *ResourceType, text string) (url.Values, Position, error) {
	plain, err := collections.Open(strings.ReplaceAll(text, "~", ":"), cursorPurpose, k.Type)
	if err != nil {
		return nil, Position{}, invalidPage()
	}
	var c cursor
	if err := json.Unmarshal([]byte(plain), &c); err != nil || c.Type != k.Type || c.ID == "" {
		return nil, Position{}, invalidPage()
	}
	params, err := url.ParseQuery(c.Query)
	if err != nil {
		return nil, Position{}, invalidPage()
	}
	return params, Position{c.Value, c.ID}, nil
}

func invalidPage() error {
	return fault.Field(PageParam, "This is not a page of this search. Search again.")
}
