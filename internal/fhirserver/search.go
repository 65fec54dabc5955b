package fhirserver

import (
	"context"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// The default and the largest page size.
const (
	DefaultCount = 50
	MaxCount     = 1000
)

// Search holds the conditions, sort order and start position of a search of one type.
type Search struct {
	Type   *ResourceType
	Reader Reader
	Limit  int
	After  Position
	// Order is the requested sort order; nil is the type's default.
	Order *Order
	// Include and RevInclude are the requested values of _include and _revinclude.
	Include, RevInclude []string
	// CountOnly requests only the number of matches. Total is the value of _total: "none", "estimate", "accurate", or "" if absent.
	CountOnly bool
	Total     string
	// View is the requested part of each resource.
	View fhir.View

	ctx         context.Context // of the HTTP request; nil means Background
	where       collections.Conditions
	patients    []string // ids of the requested patients; nil means all
	kinds       []string // requested kinds of readings; nil means all
	ids         bool     // filtered by resource id
	dated       bool     // filtered by time
	nameFilters []func(patients.FoldedName) bool
	exactNames  []func(family, given string) bool
	birthRanges [][]collections.TimeRange

	hasIdentifier bool     // filtered by a person's identifier
	userNames     []values // staff name filters
	costly        []costlyCondition
}

// costlyCondition is a condition too expensive for a search of all resources.
type costlyCondition struct{ param, words string }

// Position is the sort key and id of a row. The zero value precedes the first row.
type Position struct{ Value, ID string }

// NewSearch returns a search of all resources of a type that the reader may see.
func NewSearch(k *ResourceType, r Reader) *Search {
	return &Search{Type: k, Reader: r, Limit: DefaultCount}
}

// SetContext sets the context that cancels the search.
func (s *Search) SetContext(ctx context.Context) { s.ctx = ctx }

func (s *Search) context() context.Context {
	if s.ctx == nil {
		return context.Background()
	}
	return s.ctx
}

// FilterIDs restricts the search to resources with these ids.
func (s *Search) FilterIDs(ids ...string) {
	s.ids = true
	s.addCondition(s.Type.table.AnyOf(collections.ByID, s.Type.recordIDs(ids)))
}

// FilterPatients restricts the search to resources of these patients.
func (s *Search) FilterPatients(ids ...string) {
	s.addCondition(s.Type.table.OfPatients(ids))
	if s.patients == nil {
		s.patients = slices.Clone(ids)
		return
	}
	s.patients = slices.DeleteFunc(s.patients, func(id string) bool { return !slices.Contains(ids, id) })
}

// filterKinds restricts the search to readings of these kinds.
func (s *Search) filterKinds(kinds []string) {
	s.addCondition(s.Type.table.AnyOf(collections.ByKind, kinds))
	s.kinds = slices.DeleteFunc(slices.Clone(s.requestedKinds()), func(kind string) bool { return !slices.Contains(kinds, kind) })
}

func (s *Search) requestedKinds() []string {
	if s.kinds == nil {
		return vitals.KindNames
	}
	return s.kinds
}

// UpdatedSince restricts the search to resources changed at or after a time.
func (s *Search) UpdatedSince(at time.Time) {
	s.addCondition(s.Type.table.During(collections.ByUpdated, []collections.TimeRange{{From: at}}))
}

// SortByID sorts by id, which never changes and follows the order of creation for most types.
func (s *Search) SortByID() { s.Order = &Order{Param: "_id", by: collections.ByID} }

// SinglePatient returns the id of the requested patient if there is exactly one, or "".
func (s *Search) SinglePatient() string {
	if len(s.patients) == 1 {
		return s.patients[0]
	}
	return ""
}

// isOfOnePatient reports whether all matches belong to one patient.
func (s *Search) isOfOnePatient() bool { return len(s.patients) == 1 || s.Reader.OwnPatientID != nil }

// UsesIdentity reports whether the search filters by a name, date of birth or identifier of a person.
func (s *Search) UsesIdentity() bool {
	return s.nameFilters != nil || s.birthRanges != nil || s.hasIdentifier || s.userNames != nil && s.Type.ofPatients
}

// IsCheapToCount reports whether an index can count the matches without reading values.
func (s *Search) IsCheapToCount() bool {
	return !s.Type.IsLarge || s.ids || s.patients != nil && len(s.costly) == 0
}

func (s *Search) addCondition(condition dbx.Expression) { s.where = append(s.where, condition) }

func (s *Search) order() Order {
	order := s.Type.Orders[0]
	if s.Order != nil {
		order = *s.Order
	}
	if s.Type.orderedByTime && !s.dated {
		order.by = collections.ByID
	}
	return order
}

// conditions returns the conditions of the search and of its reader.
func (s *Search) conditions(e *Engine, app core.App) (collections.Conditions, error) {
	where := slices.Clone(s.where)
	if s.Type.ofPatients {
		if s.Reader.OwnPatientID != nil {
			own := slices.DeleteFunc([]string{*s.Reader.OwnPatientID}, func(id string) bool { return id == "" }) // no ids if the account is linked to no patient
			where = append(where, s.Type.table.OfPatients(own))
		}
		switch {
		case s.Reader.CareTeamOf == "":
		case s.Type.shared:
			where = append(where, s.Type.table.UnassignedOrOnTeamOf(s.Reader.CareTeamOf))
		default:
			where = append(where, s.Type.table.OnTeamOf(s.Reader.CareTeamOf))
		}
	}
	find, by := s.patientIDs, collections.ByID
	switch {
	case s.userNames != nil:
		find, by = s.userIDs, collections.ByUser
	case s.nameFilters == nil && s.birthRanges == nil:
		return where, nil
	}
	ids, err := find(e, app)
	if err != nil {
		return nil, err
	}
	return append(where, s.Type.table.AnyOf(by, ids)), nil
}
