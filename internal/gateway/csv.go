package gateway

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Columns of a table of readings: members of the event, and of its values.
var (
	envelopeColumns = []string{"device_id", "patient_id", "measurement_type", "timestamp", "unit", "device_model"}
	valueColumns    = vitals.SentFields()
	requiredColumns = []string{"device_id", "patient_id", "measurement_type", "timestamp"}
)

// CSV is a table of readings (RFC 4180) with column names in the first line, in any order. Each further line is one measurement in the
// gateway's format and under its rules, so a reading has the same identity from any source. A table is not signed: the operator who imports
// the file is responsible for it.
type CSV struct {
	rules   Gateway
	table   *csv.Reader
	columns []string
}

var _ Parser = (*CSV)(nil)

// OpenCSV reads the column names. Unknown, repeated and missing ones are errors.
func OpenCSV(r io.Reader, maxFuture time.Duration) (*CSV, error) {
	buffered := bufio.NewReader(r)
	if mark, err := buffered.Peek(3); err == nil && string(mark) == "\uFEFF" {
		_, _ = buffered.Discard(len(mark)) // it was just read
	}
	t := &CSV{rules: Gateway{MaxFuture: maxFuture}, table: csv.NewReader(buffered)}
	header, err := t.table.Read()
	if err != nil {
		return nil, fmt.Errorf("read the column names: %w", err)
	}
	for i, name := range header {
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case !slices.Contains(envelopeColumns, name) && !slices.Contains(valueColumns, name):
			return nil, fmt.Errorf("column %d has an unknown name", i+1)
		case slices.Contains(t.columns, name):
			return nil, fmt.Errorf("column %s is repeated", name)
		}
		t.columns = append(t.columns, name)
	}
	for _, name := range requiredColumns {
		if !slices.Contains(t.columns, name) {
			return nil, fmt.Errorf("column %s is missing", name)
		}
	}
	return t, nil
}

// Next returns the next line as the body of an event, and its line number; io.EOF after the last. A malformed line is a parse_error fault,
// after which the next can be read.
func (t *CSV) Next() (line int, body []byte, err error) {
	cells, err := t.table.Read()
	if broken, ok := errors.AsType[*csv.ParseError](err); ok {
		return broken.StartLine, nil, fault.New(fault.Invalid, "parse_error", "The line does not fit the table.").Because(broken.Err)
	}
	if err != nil {
		return 0, nil, err
	}
	line, _ = t.table.FieldPos(0)
	event, values := map[string]any{"event_type": MeasurementCreated}, map[string]any{}
	for i, cell := range cells {
		name, cell := t.columns[i], strings.TrimSpace(cell)
		switch {
		case cell == "":
		case slices.Contains(envelopeColumns, name):
			event[name] = cell
		default:
			values[name] = cellValue(cell)
		}
	}
	event["values"] = values
	body, err = json.Marshal(event)
	return line, body, err
}

var leadingZeros = regexp.MustCompile(`^(-?)0+(\d)`)

// cellValue returns a cell as a JSON value: a number or boolean if it is one, else text.
func cellValue(cell string) any {
	switch strings.ToLower(cell) {
	case "true", "yes":
		return true
	case "false", "no":
		return false
	}
	number := leadingZeros.ReplaceAllString(cell, "$1$2") // a device with three digits shows 084
	if json.Valid([]byte(number)) && strings.IndexAny(number, "-0123456789") == 0 {
		return json.Number(number)
	}
	return cell
}

// Parse parses a body of Next. Faults name the columns.
func (t *CSV) Parse(body []byte, now time.Time) (Event, error) {
	event, err := t.rules.Parse(body, now)
	return event, withFieldNames(err, func(field string) string { return strings.TrimPrefix(field, "values.") })
}
