package collections

import (
	"strings"

	"github.com/pocketbase/pocketbase/core"
)

// RowInsert stores rows of one table, up to sixteen with one statement: what a statement costs by itself, such as the journal that SQLite keeps
// for each one on a table with triggers, is shared. One that fails leaves what came before it: with that SQLite keeps no journal where nothing else
// asks for one. Values are bound, so texts may be anything.
type RowInsert struct {
	columns int
	texts   map[int]string // by the number of rows
}

// rowGroups are how many rows a statement takes. Few sizes make few statements, which connections remember.
var rowGroups = []int{16, 4, 1}

// NewRowInsert takes the table, its columns separated by commas, and what follows the rows, such as ON CONFLICT; "" is nothing.
func NewRowInsert(table, columns, then string) RowInsert {
	insert := RowInsert{columns: strings.Count(columns, ",") + 1, texts: map[int]string{}}
	row := "(?" + strings.Repeat(", ?", insert.columns-1) + ")"
	for _, size := range rowGroups {
		insert.texts[size] = "INSERT OR FAIL INTO " + table + " (" + columns + ") VALUES " + row + strings.Repeat(", "+row, size-1) + " " + then
	}
	return insert
}

// Store inserts the rows in their order, each with a value for every column. After an error some may be stored: the transaction must be rolled
// back.
func (i RowInsert) Store(tx core.App, rows [][]any) error {
	values := make([]any, 0, min(len(rows), rowGroups[0])*i.columns)
	for _, size := range rowGroups {
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
