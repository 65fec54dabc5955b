package collections

import (
	"strconv"

	"github.com/pocketbase/dbx"
)

// Row reads the columns of a stored row by name. A [core.Record] is one; a list uses a [ScannedRow], which is several times as fast.
type Row interface {
	GetString(column string) string
	GetInt(column string) int
	GetRaw(column string) any
}

// ScannedRow is a row as the driver returned it. Sealed columns stay sealed.
type ScannedRow struct {
	index  map[string]int
	values []any
}

// scanRows reads all rows of a query.
func scanRows(what string, query rowQuery) (scanned []ScannedRow, err error) {
	var index map[string]int
	err = eachRow(what, query, func(rows *dbx.Rows) error {
		if index == nil {
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
			index = make(map[string]int, len(columns))
			for i, column := range columns {
				index[column] = i
			}
		}
		row := ScannedRow{index, make([]any, len(index))}
		targets := make([]any, len(index))
		for i := range targets {
			targets[i] = &row.values[i]
		}
		scanned = append(scanned, row)
		return rows.Scan(targets...)
	})
	return scanned, err
}

// GetRaw returns a text, a float64, or nil for NULL and unknown columns.
func (sr ScannedRow) GetRaw(column string) any {
	i, ok := sr.index[column]
	if !ok {
		return nil
	}
	switch v := sr.values[i].(type) {
	case int64:
		return float64(v)
	case []byte:
		return string(v)
	default:
		return v
	}
}

// GetString returns a column as text, "" for NULL.
func (sr ScannedRow) GetString(column string) string {
	switch v := sr.GetRaw(column).(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return ""
	}
}

// GetInt returns a column as a whole number, 0 for NULL.
func (sr ScannedRow) GetInt(column string) int {
	n, _ := sr.GetRaw(column).(float64)
	return int(n)
}
