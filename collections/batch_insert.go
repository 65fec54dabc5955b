package collections

import (
	"strings"

	"github.com/pocketbase/pocketbase/core"
)

// RowInsert inserts rows of one table, up to sixteen per statement, to share the cost of a statement: SQLite keeps a journal for each
// statement on a table with triggers. A failing row leaves the rows before it (OR FAIL), so SQLite keeps no such journal. Values are bound.
type RowInsert struct {
	columns int
	texts   map[int]string // by number of rows
}

// batchSizes are the numbers of rows per statement. Few sizes give few statements, which connections cache.
var batchSizes = []int{16, 4, 1}

// NewRowInsert takes a table, its columns separated by commas, and the end of the statement, such as an ON CONFLICT clause or "".
func NewRowInsert(table, columns, then string) RowInsert {
	insert := RowInsert{columns: strings.Count(columns, ",") + 1, texts: map[int]string{}}
	row := "(?" + strings.Repeat(", ?", insert.columns-1) + ")"
	for _, size := range batchSizes {
		insert.texts[size] = "INSERT OR FAIL INTO " + table + " (" + columns + ") VALUES " + row + strings.Repeat(", "+row, size-1) + " " + then
	}
	return insert
}

// Store inserts the rows in order, each with a value for every column. After an error some may be stored, so the caller must roll back the
// transaction.
func (i RowInsert) Store(tx core.App, rows [][]any) error {
	values := make([]any, 0, min(len(rows), batchSizes[0])*i.columns)
	for _, size := range batchSizes {
		for ; len(rows) >= size; rows = rows[size:] {
			values = values[:0]
			for _, row := range rows[:size] {
				values = append(values, row...)
			}
			if _, err := Write(tx, i.texts[size], values...); err != nil {
				return err
			}
		}
	}
	return nil
}
