package collections

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Searched says by which names the rows of a collection are searched, and in which orders they are walked. A search names no column.
type Searched struct {
	table   string
	columns map[string]string
	// patient is the column of whose the row is; "" where it is nobody's.
	patient string
	// keep is what holds of all rows that are shown.
	only string
	// within finds the rows by what is kept elsewhere, by name: it names the column's condition as %s.
	within map[string]string
}

// The names by which rows are searched and ordered.
const (
	ByAction     = "action"
	ByCreated    = "created"
	ByDeviceID   = "device id"
	ByExternalID = "external id"
	ByGender     = "gender"
	ByID         = "id"
	ByKind       = "kind"
	ByMRN        = "mrn"
	ByMeasured   = "measured"
	ByNPI        = "npi"
	ByOutcome    = "outcome"
	ByPatient    = "patient"
	ByStatus     = "status"
	ByType       = "type"
	ByUpdated    = "updated"
)

// Stretch is a time from a moment until before another; a zero end is open. Outside is everything else.
type Stretch struct {
	From, Until time.Time
	Outside     bool
}

// Keyset is a page of rows in an order, ties by id, that goes on after a row.
type Keyset struct {
	By         string // one of the names
	Descending bool
	// After and AfterID are the order's value and the id of the last row before; no id for the first page.
	After, AfterID string
	Limit          int
	// Kinds are those of the readings of one patient that may match, for the order of measurement; nil elsewhere.
	Kinds []string
}

// built is an SQL expression with parameters of its own, whatever else stands in the statement.
type built func(bind func(value any) string) string

// Build implements [dbx.Expression].
func (b built) Build(_ *dbx.DB, params dbx.Params) string {
	return b(func(value any) string {
		name := fmt.Sprintf("search%d", len(params))
		params[name] = value
		return "{:" + name + "}"
	})
}

// AnyOf keeps rows that have one of the values.
func (s *Searched) AnyOf(name string, values []string) dbx.Expression {
	column := s.columns[name]
	if len(values) == 1 {
		return built(func(bind func(any) string) string { return column + " = " + bind(values[0]) })
	}
	return built(func(bind func(any) string) string {
		return column + " IN (SELECT value FROM json_each(" + bind(jsonList(values)) + "))"
	})
}

// Has keeps rows that have a value.
func (s *Searched) Has(name string) dbx.Expression { return dbx.NewExp(s.columns[name] + " != ''") }

// FoldedAnyOf is AnyOf in any case of letters.
func (s *Searched) FoldedAnyOf(name string, values []string) dbx.Expression {
	column := s.columns[name]
	return built(func(bind func(any) string) string {
		terms := []string{"FALSE"}
		for _, value := range values {
			terms = append(terms, column+" = "+bind(value)+" COLLATE NOCASE")
		}
		return "(" + strings.Join(terms, " OR ") + ")"
	})
}

// During keeps rows whose time lies in one of the stretches.
func (s *Searched) During(name string, stretches []Stretch) dbx.Expression {
	column := s.columns[name]
	return built(func(bind func(any) string) string {
		terms := make([]string, len(stretches))
		for i, stretch := range stretches {
			terms[i] = stretch.build(column, bind)
		}
		any := terms[0]
		if len(terms) > 1 {
			any = "(" + strings.Join(terms, " OR ") + ")"
		}
		if template, elsewhere := s.within[name]; elsewhere {
			return fmt.Sprintf(template, any)
		}
		return any
	})
}

func (s Stretch) build(column string, bind func(any) string) string {
	terms := []string{column + " != ''"}
	if !s.From.IsZero() {
		terms = append(terms, column+" >= "+bind(Instant(s.From)))
	}
	if !s.Until.IsZero() {
		terms = append(terms, column+" < "+bind(Instant(s.Until)))
	}
	if s.Outside {
		return "(" + terms[0] + " AND NOT (" + strings.Join(append(terms[1:], "TRUE"), " AND ") + "))"
	}
	return "(" + strings.Join(terms, " AND ") + ")"
}

// Of keeps rows of the patients.
func (s *Searched) Of(patientIDs []string) dbx.Expression { return s.AnyOf(ByPatient, patientIDs) }

// OnTeamOf keeps rows of patients on whose care team a user is.
func (s *Searched) OnTeamOf(userID string) dbx.Expression {
	return OnCareTeam(s.columns[ByPatient], userID)
}

// NobodysOrOnTeamOf is OnTeamOf, and keeps rows that are nobody's.
func (s *Searched) NobodysOrOnTeamOf(userID string) dbx.Expression {
	return dbx.Or(dbx.HashExp{s.columns[ByPatient]: ""}, s.OnTeamOf(userID))
}

// shown are the conditions with what holds of all rows that are shown: those of deleted patients are not.
func (s *Searched) shown(where Conditions) dbx.Expression {
	all := slices.Clone(where)
	if s.only != "" {
		all = append(all, dbx.NewExp(s.only))
	}
	if s.patient != "" && s.table != Patients {
		all = append(all, dbx.NewExp(s.patient+" NOT IN (SELECT id FROM patients WHERE deleted_at != '')"))
	}
	return Every(all)
}

// after keeps what comes after the last row of the page before.
func (s *Searched) after(k Keyset) dbx.Expression {
	column, later := s.columns[k.By], ">"
	if k.Descending {
		later = "<"
	}
	return built(func(bind func(any) string) string {
		if k.AfterID == "" {
			return "TRUE"
		}
		if k.By == ByID {
			return column + " " + later + " " + bind(k.AfterID)
		}
		at := bind(k.After)
		return fmt.Sprintf("(%[1]s %[2]s= %[3]s AND (%[1]s %[2]s %[3]s OR %[4]s %[2]s %[5]s))", column, later, at, s.columns[ByID], bind(k.AfterID))
	})
}

// order is the order of a keyset.
func (s *Searched) order(k Keyset) []string {
	direction := " ASC"
	if k.Descending {
		direction = " DESC"
	}
	if k.By == ByID {
		return []string{s.columns[ByID] + direction}
	}
	return []string{s.columns[k.By] + direction, s.columns[ByID] + direction}
}

// Page finds the next rows.
func (s *Searched) Page(ctx context.Context, app core.App, where Conditions, k Keyset) (page []*core.Record, err error) {
	of := dbx.And(s.shown(where), s.after(k))
	if len(k.Kinds) > 1 {
		of = merged{k.Kinds, of, s.order(k), 0, k.Limit}
	}
	err = app.RecordQuery(s.table).WithContext(ctx).AndWhere(of).OrderBy(s.order(k)...).Limit(int64(k.Limit)).All(&page)
	return page, wrap(err, "search %s", s.table)
}

// Count is how many rows there are.
func (s *Searched) Count(ctx context.Context, app core.App, where Conditions) (n int, err error) {
	err = app.DB().Select("COUNT(*)").WithContext(ctx).From(s.table).Where(s.shown(where)).Row(&n)
	return n, wrap(err, "count %s", s.table)
}

// Place is where a row stands in an order by one of its own columns.
func (s *Searched) Place(record *core.Record, by string) string {
	return record.GetString(s.columns[by])
}
