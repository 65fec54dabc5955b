package collections

import (
	"slices"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ReadingKinds are all that an observation_type can be, as the collection has it; nil while there is none.
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

// anyKind is true of all readings. Whoever asks for a patient's readings of a span of time, of whichever kind, says so: of each kind they stand in order of
// time, in the one index of patients.
func anyKind(app core.App) string {
	kinds := slices.Clone(ReadingKinds(app))
	if len(kinds) == 0 {
		return "observation_type != ''"
	}
	for i, kind := range kinds {
		kinds[i] = quoted(kind)
	}
	return "observation_type IN (" + strings.Join(kinds, ", ") + ")"
}

// merged are the readings of a page that are of one patient and of several kinds, in an order that begins with the time of measurement. Each kind is
// walked in its own order, and no further than to the end of the page: SQLite merges what it is told apart, and would sort all that it finds together.
type merged struct {
	kinds         []string
	where         dbx.Expression
	order         []string
	offset, limit int
}

// Build implements [dbx.Expression].
func (m merged) Build(db *dbx.DB, params dbx.Params) string {
	where := m.where.Build(db, params)
	walks := make([]string, len(m.kinds))
	for i, kind := range m.kinds {
		walks[i] = "SELECT _rowid_ AS number, measured_at, id FROM observations WHERE observation_type = " + quoted(kind) + " AND (" + where + ")"
	}
	return built(func(bind func(any) string) string {
		return "_rowid_ IN (SELECT number FROM (" + strings.Join(walks, " UNION ALL ") + " ORDER BY " + strings.Join(m.order, ", ") +
			" LIMIT +" + bind(m.limit) + " OFFSET +" + bind(m.offset) + "))"
	}).Build(db, params)
}
