package fhirserver

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Result is what a search found.
type Result struct {
	Rows []Row
	// Total is how many match; nil where nobody counted.
	Total *int
	// Next is where the next page begins; nil for none.
	Next *Position
}

// Search finds a page and, where it is asked for or soon done, how many match in all.
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
	if s.CountOnly || s.Total == "accurate" || s.Total == "estimate" || s.Total == "" && s.Cheap() {
		total, err := e.Count(app, s)
		if err != nil {
			return r, err
		}
		r.Total = &total
	}
	return r, nil
}

// LastN finds the last so many readings of each kind that a search about one patient lets through. What was entered in error was never one, unless it is
// asked for by its status. Source: FHIR R4, Observation, "$lastn".
func (e *Engine) LastN(app core.App, s *Search, most int, withdrawnToo bool) (r Result, err error) {
	for _, d := range vitals.Definitions {
		one := *s
		one.where = slices.Clone(s.where)
		one.ofKinds([]string{string(d.Kind)})
		if !withdrawnToo {
			one.where = append(one.where, s.Kind.table.AnyOf(collections.ByStatus, []string{collections.StatusFinal, collections.StatusSuspect}))
		}
		one.Limit, one.Order, one.After = most, nil, Position{}
		rows, _, _, err := e.Page(app, &one)
		if err != nil {
			return r, err
		}
		r.Rows = append(r.Rows, rows...)
	}
	r.Total = new(len(r.Rows))
	return r, nil
}

// Besides finds what a search asked to be brought along with its rows, of the types that may be shown: included are resources that the rows name or that
// name them.
func (e *Engine) Besides(app core.App, s *Search, rows []Row, may func(*Kind) bool) (included map[*Kind][]Row, withheld []*Kind, err error) {
	included = map[*Kind][]Row{}
	add := func(k *Kind, ids []string) error {
		switch {
		case len(ids) == 0:
			return nil
		case !may(k):
			withheld = append(withheld, k)
			return nil
		}
		found := NewSearch(k, s.Reader)
		found.IDs(ids...)
		found.Limit = len(ids)
		found.ByID()
		found.ctx = s.ctx
		included[k], _, _, err = e.Page(app, found)
		return err
	}
	if slices.Contains(s.Include, "Observation:subject") {
		if err := add(people, distinct(rows, func(r Row) string { return r.PatientID })); err != nil {
			return nil, nil, err
		}
	}
	if slices.Contains(s.Include, "Observation:device") {
		if err := add(devices, distinct(rows, func(r Row) string { return r.DeviceID })); err != nil {
			return nil, nil, err
		}
	}
	if slices.Contains(s.Join, "Provenance:target") && s.Kind == observed {
		if err := add(provenances, distinct(rows, func(r Row) string { return r.ID })); err != nil {
			return nil, nil, err
		}
	}
	return included, withheld, nil
}

// distinct are the values of rows, each once and none that is "".
func distinct(rows []Row, value func(Row) string) (list []string) {
	known := map[string]bool{"": true}
	for _, row := range rows {
		if v := value(row); !known[v] {
			known[v], list = true, append(list, v)
		}
	}
	return list
}
