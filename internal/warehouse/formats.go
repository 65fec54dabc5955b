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

// rowWriter writes one file.
type rowWriter interface {
	// add writes rows and returns how many records they are in the format.
	add(rows []collections.WarehouseRow) (int, error)
	finish() error
}

func (e *Engine) newRowWriter(app core.App, w io.Writer, t *collections.WarehouseTable, now time.Time) (rowWriter, error) {
	switch e.options.Format {
	case FHIR:
		return &ndjsonWriter{w: w, app: app, table: t, engine: e, now: now}, nil
	case Parquet:
		return newParquetWriter(w, t, e.pseudonyms, now), nil
	}
	text := &csvWriter{w: csv.NewWriter(w), table: t, pseudonyms: e.pseudonyms, now: now}
	head := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = c.Name
	}
	return text, text.w.Write(head)
}

// csvWriter writes CSV. Source: RFC 4180.
type csvWriter struct {
	w          *csv.Writer
	table      *collections.WarehouseTable
	pseudonyms pseudonymizer
	now        time.Time
}

func (cw *csvWriter) add(rows []collections.WarehouseRow) (int, error) {
	for _, row := range rows {
		if err := cw.w.Write(cw.pseudonyms.row(cw.table, row, cw.now)); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

func (cw *csvWriter) finish() error {
	cw.w.Flush()
	return cw.w.Error()
}

// parquetWriter writes Parquet. Source: Apache Parquet format, version 2.
type parquetWriter struct {
	w           *parquet.GenericWriter[any]
	columnIndex []int // index in the file of each column
	table       *collections.WarehouseTable
	pseudonyms  pseudonymizer
	now         time.Time
}

// maxRowGroup bounds the rows that are buffered before a row group is written.
const maxRowGroup = 50_000

func newParquetWriter(w io.Writer, t *collections.WarehouseTable, v pseudonymizer, now time.Time) *parquetWriter {
	group := parquet.Group{}
	for _, c := range t.Columns {
		group[c.Name] = parquet.Optional(nodeOf(c.Shape))
	}
	schema := parquet.NewSchema(t.Name, group)
	s := &parquetWriter{table: t, pseudonyms: v, now: now, columnIndex: make([]int, len(t.Columns))}
	for i, c := range t.Columns {
		leaf, _ := schema.Lookup(c.Name) // always found: added above
		s.columnIndex[i] = leaf.ColumnIndex
	}
	s.w = parquet.NewGenericWriter[any](w, schema, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(maxRowGroup))
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

func (pw *parquetWriter) add(rows []collections.WarehouseRow) (int, error) {
	encoded := make([]parquet.Row, len(rows))
	for i, row := range rows {
		line := make(parquet.Row, len(pw.table.Columns))
		for j, text := range pw.pseudonyms.row(pw.table, row, pw.now) {
			value, err := valueOf(pw.table.Columns[j].Shape, text)
			if err != nil {
				return 0, fmt.Errorf("column %s: %w", pw.table.Columns[j].Name, err)
			}
			there := 1
			if value.IsNull() {
				there = 0
			}
			line[pw.columnIndex[j]] = value.Level(0, there, pw.columnIndex[j])
		}
		encoded[i] = line
	}
	return pw.w.WriteRows(encoded)
}

func (pw *parquetWriter) finish() error { return pw.w.Close() }

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
