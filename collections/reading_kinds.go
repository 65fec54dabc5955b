package collections

import (
	"slices"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ReadingKinds returns all values of observation_type, or nil before the collection exists.
func ReadingKinds(app core.App) []string {
	readings, err := app.FindCachedCollectionByNameOrId(Observations)
	if err != nil {
		return nil
	}
	if kinds, ok := readings.Fields.GetByName("observation_type").(*core.SelectField); ok {
		return kinds.Values
	}
	return nil
}

// anyKind matches all readings. Queries for a patient's readings of a time range must name all kinds: the only patient index orders the
// readings of each kind by time.
func anyKind(app core.App) string {
	kinds := slices.Clone(ReadingKinds(app))
	if len(kinds) == 0 {
		return "observation_type != ''"
	}
	for i, kind := range kinds {
		kinds[i] = quoteSQL(kind)
	}
	return "observation_type IN (" + strings.Join(kinds, ", ") + ")"
}

// mergedKinds selects a page of one patient's readings of several kinds, ordered by time of measurement. It reads each kind in index order,
// only up to the end of the page, and SQLite merges them; a single query would sort all readings.
type mergedKinds struct {
	kinds         []string
	where         dbx.Expression
	order         []string
	offset, limit int
}

// Build implements [dbx.Expression].
func (m mergedKinds) Build(db *dbx.DB, params dbx.Params) string {
	where := m.where.Build(db, params)
	walks := make([]string, len(m.kinds))
	for i, kind := range m.kinds {
		walks[i] = "SELECT _rowid_ AS number, measured_at, id FROM observations WHERE observation_type = " + quoteSQL(kind) + " AND (" + where + ")"
	}
	return expression(func(bind func(any) string) string {
		return "_rowid_ IN (SELECT number FROM (" + strings.Join(walks, " UNION ALL ") + " ORDER BY " + strings.Join(m.order, ", ") +
			" LIMIT +" + bind(m.limit) + " OFFSET +" + bind(m.offset) + "))"
	}).Build(db, params)
}
