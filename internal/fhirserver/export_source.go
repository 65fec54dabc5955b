package fhirserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
)

const (
	// onePage is how many resources are read at once.
	onePage = 500
	// longestLate is how long a write may take from the moment that it is dated by until it is committed.
	// Source: docs/decisions/limits.md, "Request size and time".
	longestLate = 2 * time.Minute
)

// nouns are what the followed changes call the types; what has none is not followed.
var nouns = map[string]string{
	"Patient": collections.ChangePatient, "Observation": collections.ChangeObservation, "Provenance": collections.ChangeObservation,
	"Device": collections.ChangeDevice, "CareTeam": collections.ChangeCareTeam, "Flag": collections.ChangeAlert,
}

// Facade has the resources of the FHIR interface.
type Facade struct{ Engine *Engine }

// late is the place of the last page: what was dated before a time and committed after it.
const late = "late"

// Read implements [Resources].
func (f Facade) Read(_ context.Context, app core.App, kind string, since time.Time, after string) (Page, error) {
	k := KindOf(kind)
	if k == nil {
		return Page{}, fmt.Errorf("there are no resources %s", kind)
	}
	if after == late {
		return f.readLate(app, k, since)
	}
	search := NewSearch(k, Reader{Role: authz.Client})
	search.Limit = onePage
	search.ByID()
	if !since.IsZero() {
		search.UpdatedSince(earliest(kind, since))
		if at := slices.IndexFunc(k.Orders, func(o Order) bool { return o.Param == "_lastUpdated" && !o.Descending }); at >= 0 {
			search.Order = &k.Orders[at]
		}
	}
	if after != "" {
		search.After.ID, search.After.Value, _ = strings.Cut(after, " ")
	}
	rows, last, done, err := f.Engine.Page(app, search)
	if err != nil {
		return Page{}, err
	}
	page, err := encode(rows)
	switch {
	case !done:
		page.Next = last.ID + " " + last.Value
	case !since.IsZero() && nouns[kind] != "":
		page.Next = late
	}
	return page, err
}

// earliest is the first moment after a time. Of what is not followed nobody knows what was committed late: it comes once more rather than never.
func earliest(kind string, since time.Time) time.Time {
	if nouns[kind] == "" {
		return since.Add(-longestLate)
	}
	return since.Add(time.Microsecond)
}

// readLate reads what says that it was last changed before, but was committed after: the export before has not seen it. So it is with what came back with
// a patient who was restored: it is as it was, and an export before may have told that it is deleted.
func (f Facade) readLate(app core.App, k *Kind, since time.Time) (page Page, err error) {
	ids, err := collections.ChangedBetween(app, nouns[k.Type], since, since.Add(longestLate))
	if err != nil {
		return page, err
	}
	back, err := collections.PatientsRestoredSince(app, since)
	if err != nil {
		return page, err
	}
	theirs, err := collections.RecordsOfPatients(app, nouns[k.Type], back)
	if err != nil {
		return page, err
	}
	ids = append(ids, theirs...)
	slices.Sort(ids)
	ids = slices.Compact(ids) // one that is asked for in two chunks would come twice
	err = f.each(app, k, ids, func(rows []Row) error {
		found, err := encode(rows)
		for _, r := range found.Resources {
			if r.Unreadable || !updatedAt(r.Body).After(since) {
				page.Resources = append(page.Resources, r)
			}
		}
		return err
	})
	return page, err
}

// Named reads resources by id. Those that are not there are left out.
func (f Facade) Named(app core.App, kind string, ids []string) (found []Resource, err error) {
	k := KindOf(kind)
	if k == nil {
		return nil, fmt.Errorf("there are no resources %s", kind)
	}
	err = f.each(app, k, ids, func(rows []Row) error {
		page, err := encode(rows)
		found = append(found, page.Resources...)
		return err
	})
	return found, err
}

// each reads resources by id, as many at once as are on a page.
func (f Facade) each(app core.App, k *Kind, ids []string, do func([]Row) error) error {
	for chunk := range slices.Chunk(ids, onePage) {
		search := NewSearch(k, Reader{Role: authz.Client})
		search.Limit = onePage
		search.ByID()
		search.IDs(chunk...)
		rows, _, _, err := f.Engine.Page(app, search)
		if err == nil {
			err = do(rows)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func encode(rows []Row) (page Page, err error) {
	for _, row := range rows {
		r := Resource{ID: row.ID, Unreadable: row.Unreadable}
		if !r.Unreadable {
			if r.Body, err = row.Resource.Encode(); err != nil {
				return page, err
			}
		}
		page.Resources = append(page.Resources, r)
	}
	return page, nil
}

func updatedAt(body []byte) time.Time {
	var resource struct {
		Meta struct {
			LastUpdated time.Time `json:"lastUpdated"`
		} `json:"meta"`
	}
	if json.Unmarshal(body, &resource) != nil {
		return time.Time{}
	}
	return resource.Meta.LastUpdated
}

// Deleted implements [Resources]: what was deleted, and what was a patient's who was, unless it is back. A care team that nobody is on any more is none.
func (f Facade) Deleted(_ context.Context, app core.App, kind string, since time.Time) (references []string, complete bool, err error) {
	k, noun := KindOf(kind), nouns[kind]
	patients, complete, err := collections.DeletedSince(app, collections.ChangePatient, since)
	if err != nil {
		return nil, false, err
	}
	ids := patients
	switch kind {
	case "Patient":
	case "CareTeam":
		emptied, err := collections.PatientsWithEmptiedTeams(app, since, longestLate)
		if err != nil {
			return nil, false, err
		}
		ids = append(ids, emptied...)
	case "Observation", "Provenance", "Flag":
		theirs, err := collections.RecordsOfPatients(app, noun, patients)
		if err != nil {
			return nil, false, err
		}
		if ids, _, err = collections.DeletedSince(app, noun, since); err != nil {
			return nil, false, err
		}
		ids = append(ids, theirs...)
	default: // accounts, devices and the trail stay
		return nil, true, nil
	}
	there := map[string]bool{}
	err = f.each(app, k, ids, func(rows []Row) error {
		for _, row := range rows {
			there[row.ID] = true
		}
		return nil
	})
	for _, id := range ids {
		if !there[id] {
			there[id] = true // once
			references = append(references, kind+"/"+id)
		}
	}
	return references, complete, err
}
