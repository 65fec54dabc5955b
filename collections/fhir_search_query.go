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

// SearchTable describes the FHIR search of one collection: search names for columns and orders. Callers never name a column.
type SearchTable struct {
	table   string
	columns map[string]string
	// patient is the column of the row's patient; "" if it has none.
	patient string
	// only is a condition for all visible rows.
	only string
	// within matches rows by data of another table, by name; %s is the condition on the column.
	within map[string]string
}

// Names of search fields and orders.
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
	ByUser       = "user"
)

// TimeRange is from a moment until before another; a zero end is open. Outside selects all other times.
type TimeRange struct {
	From, Until time.Time
	Outside     bool
}

// SearchPage is a page of rows in an order, ties by id, after a given row (keyset pagination).
type SearchPage struct {
	By         string // one of the search names
	Descending bool
	// After and AfterID are the sort key and the id of the previous page's last row; an empty AfterID starts at the first page.
	After, AfterID string
	Limit          int
	// Kinds are the kinds of one patient's readings that may match, for the order of measurement; else nil.
	Kinds []string
}

// expression is an SQL expression with parameter names unique within the statement.
type expression func(bind func(value any) string) string

// Build implements [dbx.Expression].
func (e expression) Build(_ *dbx.DB, params dbx.Params) string {
	return e(func(value any) string {
		name := fmt.Sprintf("search%d", len(params))
		params[name] = value
		return "{:" + name + "}"
	})
}

// AnyOf keeps rows that have one of the values.
func (s *SearchTable) AnyOf(name string, values []string) dbx.Expression {
	column := s.columns[name]
	if len(values) == 1 {
		return expression(func(bind func(any) string) string { return column + " = " + bind(values[0]) })
	}
	return expression(func(bind func(any) string) string {
		return column + " IN (SELECT value FROM json_each(" + bind(jsonList(values)) + "))"
	})
}

// Has keeps rows that have a value.
func (s *SearchTable) Has(name string) dbx.Expression { return dbx.NewExp(s.columns[name] + " != ''") }

// FoldedAnyOf is AnyOf without regard to case.
func (s *SearchTable) FoldedAnyOf(name string, values []string) dbx.Expression {
	column := s.columns[name]
	return expression(func(bind func(any) string) string {
		terms := []string{"FALSE"}
		for _, value := range values {
			terms = append(terms, column+" = "+bind(value)+" COLLATE NOCASE")
		}
		return "(" + strings.Join(terms, " OR ") + ")"
	})
}

// During keeps rows with a time in one of the ranges.
func (s *SearchTable) During(name string, stretches []TimeRange) dbx.Expression {
	column := s.columns[name]
	return expression(func(bind func(any) string) string {
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

func (r TimeRange) build(column string, bind func(any) string) string {
	terms := []string{column + " != ''"}
	if !r.From.IsZero() {
		terms = append(terms, column+" >= "+bind(FormatInstant(r.From)))
	}
	if !r.Until.IsZero() {
		terms = append(terms, column+" < "+bind(FormatInstant(r.Until)))
	}
	if r.Outside {
		return "(" + terms[0] + " AND NOT (" + strings.Join(append(terms[1:], "TRUE"), " AND ") + "))"
	}
	return "(" + strings.Join(terms, " AND ") + ")"
}

// OfPatients keeps rows of the patients.
func (s *SearchTable) OfPatients(patientIDs []string) dbx.Expression {
	return s.AnyOf(ByPatient, patientIDs)
}

// OnTeamOf keeps rows of patients of a user's care teams.
func (s *SearchTable) OnTeamOf(userID string) dbx.Expression {
	return OnCareTeam(s.columns[ByPatient], userID)
}

// UnassignedOrOnTeamOf is OnTeamOf, and keeps rows without a patient.
func (s *SearchTable) UnassignedOrOnTeamOf(userID string) dbx.Expression {
	return dbx.Or(dbx.HashExp{s.columns[ByPatient]: ""}, s.OnTeamOf(userID))
}

// visible adds the conditions for visible rows: rows of deleted patients are hidden.
func (s *SearchTable) visible(where Conditions) dbx.Expression {
	all := slices.Clone(where)
	if s.only != "" {
		all = append(all, dbx.NewExp(s.only))
	}
	if s.patient != "" && s.table != Patients {
		all = append(all, dbx.NewExp(s.patient+" NOT IN (SELECT id FROM patients WHERE deleted_at != '')"))
	}
	return AllOf(all)
}

// after keeps rows after the last row of the previous page.
func (s *SearchTable) after(k SearchPage) dbx.Expression {
	column, later := s.columns[k.By], ">"
	if k.Descending {
		later = "<"
	}
	return expression(func(bind func(any) string) string {
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

// order returns the order of a page.
func (s *SearchTable) order(k SearchPage) []string {
	direction := " ASC"
	if k.Descending {
		direction = " DESC"
	}
	if k.By == ByID {
		return []string{s.columns[ByID] + direction}
	}
	return []string{s.columns[k.By] + direction, s.columns[ByID] + direction}
}

// Page returns the next rows.
func (s *SearchTable) Page(ctx context.Context, app core.App, where Conditions, k SearchPage) (page []*core.Record, err error) {
	of := dbx.And(s.visible(where), s.after(k))
	if len(k.Kinds) > 1 {
		of = mergedKinds{k.Kinds, of, s.order(k), 0, k.Limit}
	}
	err = app.RecordQuery(s.table).WithContext(ctx).AndWhere(of).OrderBy(s.order(k)...).Limit(int64(k.Limit)).All(&page)
	return page, wrap(err, "search %s", s.table)
}

// Count counts the matching rows.
func (s *SearchTable) Count(ctx context.Context, app core.App, where Conditions) (n int, err error) {
	err = app.DB().Select("COUNT(*)").WithContext(ctx).From(s.table).Where(s.visible(where)).Row(&n)
	return n, wrap(err, "count %s", s.table)
}

// SortKey returns the value of a row in an order by one of its own columns.
func (s *SearchTable) SortKey(record *core.Record, by string) string {
	return record.GetString(s.columns[by])
}
