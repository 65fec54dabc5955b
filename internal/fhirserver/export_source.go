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
	// exportPageSize is the number of resources in one read.
	exportPageSize = 500
	// maxCommitDelay is the longest time between the time stamp of a write and its commit.
	// Source: docs/decisions/limits.md, "Request size and time".
	maxCommitDelay = 2 * time.Minute
)

// changeTypes are the names of the types in the change feed; the feed does not contain the other types.
var changeTypes = map[string]string{
	"Patient": collections.ChangePatient, "Observation": collections.ChangeObservation, "Provenance": collections.ChangeObservation,
	"Device": collections.ChangeDevice, "CareTeam": collections.ChangeCareTeam, "Flag": collections.ChangeAlert,
}

// ExportSource implements [Resources] with the resources of the FHIR API.
type ExportSource struct{ Engine *Engine }

// late is the position of the last page: writes that are dated before a time but were committed after it.
const late = "late"

// Read implements [Resources].
func (s ExportSource) Read(_ context.Context, app core.App, kind string, since time.Time, after string) (ExportPage, error) {
	k := ResourceTypeByName(kind)
	if k == nil {
		return ExportPage{}, fmt.Errorf("unknown resource type %s", kind)
	}
	if after == late {
		return s.readLate(app, k, since)
	}
	search := NewSearch(k, Reader{Role: authz.Client})
	search.Limit = exportPageSize
	search.SortByID()
	if !since.IsZero() {
		search.UpdatedSince(earliest(kind, since))
		if at := slices.IndexFunc(k.Orders, func(o Order) bool { return o.Param == "_lastUpdated" && !o.Descending }); at >= 0 {
			search.Order = &k.Orders[at]
		}
	}
	if after != "" {
		search.After.ID, search.After.Value, _ = strings.Cut(after, " ")
	}
	rows, last, done, err := s.Engine.Page(app, search)
	if err != nil {
		return ExportPage{}, err
	}
	page, err := encode(rows)
	switch {
	case !done:
		page.Next = last.ID + " " + last.Value
	case !since.IsZero() && changeTypes[kind] != "":
		page.Next = late
	}
	return page, err
}

// earliest returns the first instant to export after a time. Late commits of types outside the change feed cannot be detected, so their range starts
// earlier: a resource is exported twice rather than never.
func earliest(kind string, since time.Time) time.Time {
	if changeTypes[kind] == "" {
		return since.Add(-maxCommitDelay)
	}
	return since.Add(time.Microsecond)
}

// readLate returns resources that an earlier export missed: last changed before since but committed after. It also returns the resources of restored
// patients, which are unchanged but may have been exported as deleted.
func (s ExportSource) readLate(app core.App, k *ResourceType, since time.Time) (page ExportPage, err error) {
	ids, err := collections.ChangedBetween(app, changeTypes[k.Type], since, since.Add(maxCommitDelay))
	if err != nil {
		return page, err
	}
	restored, err := collections.PatientsRestoredSince(app, since)
	if err != nil {
		return page, err
	}
	ofPatients, err := collections.RecordsOfPatients(app, changeTypes[k.Type], restored)
	if err != nil {
		return page, err
	}
	ids = append(ids, ofPatients...)
	slices.Sort(ids)
	ids = slices.Compact(ids) // a duplicate in two chunks would be exported twice
	err = s.eachPage(app, k, ids, func(rows []Row) error {
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

// ByIDs returns resources by id and omits those that do not exist.
func (s ExportSource) ByIDs(app core.App, kind string, ids []string) (found []ExportLine, err error) {
	k := ResourceTypeByName(kind)
	if k == nil {
		return nil, fmt.Errorf("unknown resource type %s", kind)
	}
	err = s.eachPage(app, k, ids, func(rows []Row) error {
		page, err := encode(rows)
		found = append(found, page.Resources...)
		return err
	})
	return found, err
}

// eachPage reads resources by id, one page at a time.
func (s ExportSource) eachPage(app core.App, k *ResourceType, ids []string, do func([]Row) error) error {
	for chunk := range slices.Chunk(ids, exportPageSize) {
		search := NewSearch(k, Reader{Role: authz.Client})
		search.Limit = exportPageSize
		search.SortByID()
		search.FilterIDs(chunk...)
		rows, _, _, err := s.Engine.Page(app, search)
		if err == nil {
			err = do(rows)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func encode(rows []Row) (page ExportPage, err error) {
	for _, row := range rows {
		r := ExportLine{ID: row.ID, Unreadable: row.Unreadable}
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

// Deleted implements [Resources]. It returns deleted resources and the resources of deleted patients, unless they were restored. A care team without members
// is deleted.
func (s ExportSource) Deleted(_ context.Context, app core.App, kind string, since time.Time) (references []string, complete bool, err error) {
	k, noun := ResourceTypeByName(kind), changeTypes[kind]
	patients, complete, err := collections.DeletedSince(app, collections.ChangePatient, since)
	if err != nil {
		return nil, false, err
	}
	ids := patients
	switch kind {
	case "Patient":
	case "CareTeam":
		emptied, err := collections.PatientsWithEmptiedTeams(app, since, maxCommitDelay)
		if err != nil {
			return nil, false, err
		}
		ids = append(ids, emptied...)
	case "Observation", "Provenance", "Flag":
		ofPatients, err := collections.RecordsOfPatients(app, noun, patients)
		if err != nil {
			return nil, false, err
		}
		if ids, _, err = collections.DeletedSince(app, noun, since); err != nil {
			return nil, false, err
		}
		ids = append(ids, ofPatients...)
	default: // accounts, devices and audit events are never deleted
		return nil, true, nil
	}
	exists := map[string]bool{}
	err = s.eachPage(app, k, ids, func(rows []Row) error {
		for _, row := range rows {
			exists[row.ID] = true
		}
		return nil
	})
	for _, id := range ids {
		if !exists[id] {
			exists[id] = true // report each once
			references = append(references, kind+"/"+id)
		}
	}
	return references, complete, err
}
