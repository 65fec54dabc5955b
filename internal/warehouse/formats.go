package warehouse

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// The file formats.
const (
	CSV     = "csv"
	Parquet = "parquet"
	FHIR    = "fhir"
)

// extensions are the file extensions of the formats.
var extensions = map[string]string{CSV: "csv", Parquet: "parquet", FHIR: "ndjson"}

// sheet writes one file.
type sheet interface {
	// add writes rows and returns how many records they are in the format.
	add(rows []collections.WarehouseRow) (int, error)
	finish() error
}

func (e *Engine) newSheet(app core.App, w io.Writer, t *collections.WarehouseTable, now time.Time) (sheet, error) {
	switch e.options.Format {
	case FHIR:
		return &resourceSheet{w: w, app: app, table: t, engine: e, now: now}, nil
	case Parquet:
		return newColumnSheet(w, t, e.veil, now), nil
	}
	text := &textSheet{w: csv.NewWriter(w), table: t, veil: e.veil, now: now}
	head := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = c.Name
	}
	return text, text.w.Write(head)
}

// textSheet writes CSV. Source: RFC 4180.
type textSheet struct {
	w     *csv.Writer
	table *collections.WarehouseTable
	veil  veil
	now   time.Time
}

func (s *textSheet) add(rows []collections.WarehouseRow) (int, error) {
	for _, row := range rows {
		if err := s.w.Write(s.veil.row(s.table, row, s.now)); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

func (s *textSheet) finish() error {
	s.w.Flush()
	return s.w.Error()
}

// columnSheet writes Parquet. Source: Apache Parquet format, version 2.
type columnSheet struct {
	w     *parquet.GenericWriter[any]
	place []int // index in the file of each column
	table *collections.WarehouseTable
	veil  veil
	now   time.Time
}

// rowsTogether bounds the rows that are buffered before a row group is written.
const rowsTogether = 50_000

func newColumnSheet(w io.Writer, t *collections.WarehouseTable, v veil, now time.Time) *columnSheet {
	group := parquet.Group{}
	for _, c := range t.Columns {
		group[c.Name] = parquet.Optional(nodeOf(c.Shape))
	}
	schema := parquet.NewSchema(t.Name, group)
	s := &columnSheet{table: t, veil: v, now: now, place: make([]int, len(t.Columns))}
	for i, c := range t.Columns {
		leaf, _ := schema.Lookup(c.Name) // always found: added above
		s.place[i] = leaf.ColumnIndex
	}
	s.w = parquet.NewGenericWriter[any](w, schema, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(rowsTogether))
	return s
}

func nodeOf(shape collections.Shape) parquet.Node {
	switch shape {
	case collections.ShapeCount, collections.ShapeBirthYear:
		return parquet.Int(64)
	case collections.ShapeMeasure:
		return parquet.Leaf(parquet.DoubleType)
	case collections.ShapeTruth:
		return parquet.Leaf(parquet.BooleanType)
	case collections.ShapeMoment:
		return parquet.Timestamp(parquet.Microsecond)
	case collections.ShapeDay:
		return parquet.Date()
	}
	return parquet.String()
}

func (s *columnSheet) add(rows []collections.WarehouseRow) (int, error) {
	encoded := make([]parquet.Row, len(rows))
	for i, row := range rows {
		line := make(parquet.Row, len(s.table.Columns))
		for j, text := range s.veil.row(s.table, row, s.now) {
			value, err := valueOf(s.table.Columns[j].Shape, text)
			if err != nil {
				return 0, fmt.Errorf("column %s: %w", s.table.Columns[j].Name, err)
			}
			there := 1
			if value.IsNull() {
				there = 0
			}
			line[s.place[j]] = value.Level(0, there, s.place[j])
		}
		encoded[i] = line
	}
	return s.w.WriteRows(encoded)
}

func (s *columnSheet) finish() error { return s.w.Close() }

// valueOf parses a value; an empty value or an invalid time is null.
func valueOf(shape collections.Shape, text string) (parquet.Value, error) {
	if text == "" {
		return parquet.NullValue(), nil
	}
	switch shape {
	case collections.ShapeCount, collections.ShapeBirthYear:
		f, err := strconv.ParseFloat(text, 64) // SQLite prints integers of a REAL column with a decimal point
		return parquet.Int64Value(int64(f)), err
	case collections.ShapeMeasure:
		f, err := strconv.ParseFloat(text, 64)
		return parquet.DoubleValue(f), err
	case collections.ShapeTruth:
		return parquet.BooleanValue(text == "true"), nil
	case collections.ShapeMoment:
		at := collections.ParseInstant(text)
		if at.IsZero() {
			return parquet.NullValue(), nil
		}
		return parquet.Int64Value(at.UnixMicro()), nil
	case collections.ShapeDay:
		at, err := time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))])
		if err != nil {
			return parquet.NullValue(), nil //nolint:nilerr // an invalid date is null
		}
		return parquet.Int32Value(int32(at.Unix() / 86400)), nil //nolint:gosec // days until the year 5881580
	}
	return parquet.ByteArrayValue([]byte(text)), nil
}
