package collections

import (
	"fmt"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// RowInsert stores rows of one table, up to sixteen with one statement: what a statement costs by itself, such as the journal that SQLite keeps
// for each one on a table with triggers, is shared. Values are bound, so texts may be anything.
type RowInsert struct {
	columns int
	texts   map[int]string // by the number of rows
}

// rowGroups are how many rows a statement takes. Few sizes make few statements, which connections remember.
var rowGroups = []int{16, 4, 1}

const mostColumns = 20

// rowParameters are the names of the values of each row of a statement.
var rowParameters = func() (names [16][mostColumns]string) {
	for i := range names {
		for j := range names[i] {
			names[i][j] = fmt.Sprintf("r%dc%d", i, j)
		}
	}
	return names
}()

// NewRowInsert takes the table, its columns separated by commas, and what follows the rows, such as ON CONFLICT; "" is nothing.
func NewRowInsert(table, columns, then string) RowInsert {
	insert := RowInsert{columns: strings.Count(columns, ",") + 1, texts: map[int]string{}}
	rows := make([]string, len(rowParameters))
	for i := range rows {
		rows[i] = "({:" + strings.Join(rowParameters[i][:insert.columns], "}, {:") + "})"
	}
	for _, size := range rowGroups {
		insert.texts[size] = "INSERT INTO " + table + " (" + columns + ") VALUES " + strings.Join(rows[:size], ", ") + " " + then
	}
	return insert
}

// Store inserts the rows in their order, each with a value for every column. After an error some may be stored: the transaction must be rolled
// back.
func (i RowInsert) Store(tx core.App, rows [][]any) error {
	for _, size := range rowGroups {
		for ; len(rows) >= size; rows = rows[size:] {
			params := make(dbx.Params, size*i.columns)
			for r, row := range rows[:size] {
				for c, value := range row {
					params[rowParameters[r][c]] = value
				}
			}
			if _, err := tx.NonconcurrentDB().NewQuery(i.texts[size]).Bind(params).Execute(); err != nil {
				return err
			}
		}
	}
	return nil
}
