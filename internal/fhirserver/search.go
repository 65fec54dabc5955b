package fhirserver

import (
	"context"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// How many resources a page has.
const (
	DefaultCount = 50
	MaxCount     = 1000
)

// Search is what is asked of one type: conditions, an order and the place from which to go on.
type Search struct {
	Kind   *Kind
	Reader Reader
	Limit  int
	After  Position
	// Order is the one asked for; nil is the type's own.
	Order *Order
	// Include and Join are what is to be brought along, as they were asked for.
	Include, Join []string
	// CountOnly: only how many there are was asked for. Total is "none", "estimate", "accurate", or "" where nobody said.
	CountOnly bool
	Total     string

	ctx      context.Context // of the request; nil for none
	where    collections.Conditions
	patients []string // the only ones that were asked for; nil for no such limit
	kinds    []string // of readings, the same
	ids      bool     // single resources were asked for
	dated    bool     // a time was asked for
	named    []func(patients.FoldedName) bool
	exact    []func(family, given string) bool
	born     [][]collections.TimeRange

	identified bool     // a number of a person was asked for
	colleagues []values // names of the practice's people
	needs      []need
}

// need is a condition that is too much to ask of everything.
type need struct{ param, words string }

// Position is where a row stands in the order of a search. The zero value is before the first.
type Position struct{ Value, ID string }

// NewSearch asks for everything of a type that the reader may see.
func NewSearch(k *Kind, r Reader) *Search {
	return &Search{Kind: k, Reader: r, Limit: DefaultCount}
}

// Within ends the search with a context.
func (s *Search) Within(ctx context.Context) { s.ctx = ctx }

func (s *Search) context() context.Context {
	if s.ctx == nil {
		return context.Background()
	}
	return s.ctx
}

// IDs keeps the resources with these ids.
func (s *Search) IDs(ids ...string) {
	s.ids = true
	s.narrow(s.Kind.table.AnyOf(collections.ByID, s.Kind.recordIDs(ids)))
}

// OfPatients keeps what is these patients'.
func (s *Search) OfPatients(ids ...string) {
	s.narrow(s.Kind.table.OfPatients(ids))
	if s.patients == nil {
		s.patients = slices.Clone(ids)
		return
	}
	s.patients = slices.DeleteFunc(s.patients, func(id string) bool { return !slices.Contains(ids, id) })
}

// ofKinds keeps readings of these kinds.
func (s *Search) ofKinds(kinds []string) {
	s.narrow(s.Kind.table.AnyOf(collections.ByKind, kinds))
	s.kinds = slices.DeleteFunc(slices.Clone(s.kindsLeft()), func(kind string) bool { return !slices.Contains(kinds, kind) })
}

func (s *Search) kindsLeft() []string {
	if s.kinds == nil {
		return vitals.KindNames
	}
	return s.kinds
}

// UpdatedSince keeps what was changed at a time or after.
func (s *Search) UpdatedSince(at time.Time) {
	s.narrow(s.Kind.table.During(collections.ByUpdated, []collections.TimeRange{{From: at}}))
}

// ByID walks in the order of ids, which is that of creation for most and never changes.
func (s *Search) ByID() { s.Order = &Order{Param: "_id", by: collections.ByID} }

// Patient is the only patient that was asked for; "" when there is not exactly one.
func (s *Search) Patient() string {
	if len(s.patients) == 1 {
		return s.patients[0]
	}
	return ""
}

// ofOne reports whether nothing but one patient's can be found.
func (s *Search) ofOne() bool { return len(s.patients) == 1 || s.Reader.Own != nil }

// ForSomebody reports whether somebody was looked for by what identifies a person.
func (s *Search) ForSomebody() bool { return s.named != nil || s.born != nil || s.identified }

// Cheap reports whether it is soon counted how many match: without looking at values, an index tells.
func (s *Search) Cheap() bool { return !s.Kind.Vast || s.ids || s.patients != nil && len(s.needs) == 0 }

func (s *Search) narrow(condition dbx.Expression) { s.where = append(s.where, condition) }

func (s *Search) order() Order {
	order := s.Kind.Orders[0]
	if s.Order != nil {
		order = *s.Order
	}
	if s.Kind.numbered && !s.dated {
		order.by = collections.ByID
	}
	return order
}

// conditions are those that were asked for and those of the reader.
func (s *Search) conditions(e *Engine, app core.App) (collections.Conditions, error) {
	where := slices.Clone(s.where)
	if s.Kind.ofPatients {
		if s.Reader.Own != nil {
			own := slices.DeleteFunc([]string{*s.Reader.Own}, func(id string) bool { return id == "" }) // of whom is linked to nobody
			where = append(where, s.Kind.table.OfPatients(own))
		}
		switch {
		case s.Reader.CareTeamOf == "":
		case s.Kind.shared:
			where = append(where, s.Kind.table.UnassignedOrOnTeamOf(s.Reader.CareTeamOf))
		default:
			where = append(where, s.Kind.table.OnTeamOf(s.Reader.CareTeamOf))
		}
	}
	find := s.people
	switch {
	case s.colleagues != nil:
		find = s.team
	case s.named == nil && s.born == nil:
		return where, nil
	}
	ids, err := find(e, app)
	if err != nil {
		return nil, err
	}
	return append(where, s.Kind.table.AnyOf(collections.ByID, ids)), nil
}
