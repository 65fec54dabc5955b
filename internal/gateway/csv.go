package gateway

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Columns of a table of readings. Those of the envelope are members of the event, the others of its values.
var (
	envelopeColumns = []string{"device_id", "patient_id", "measurement_type", "timestamp", "unit", "device_model"}
	valueColumns    = vitals.SentFields()
	neededColumns   = []string{"device_id", "patient_id", "measurement_type", "timestamp"}
)

// CSV is a table of readings (RFC 4180) with a first line of column names in any order: each further line is one
// measurement, in the gateway's own words and under its rules, so that a reading has the same identity whichever way it
// comes. Nobody signs a table: whoever may read the file vouches for it.
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
		_, _ = buffered.Discard(len(mark)) // it was just seen
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
			return nil, fmt.Errorf("column %d has no name that is known", i+1)
		case slices.Contains(t.columns, name):
			return nil, fmt.Errorf("column %s is there twice", name)
		}
		t.columns = append(t.columns, name)
	}
	for _, name := range neededColumns {
		if !slices.Contains(t.columns, name) {
			return nil, fmt.Errorf("column %s is missing", name)
		}
	}
	return t, nil
}

// Next returns the next line as the body of an event, and where it stands; io.EOF after the last. A line that is no line
// of this table is a parse_error fault, after which the next can be read.
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
			values[name] = valueOf(cell)
		}
	}
	event["values"] = values
	body, err = json.Marshal(event)
	return line, body, err
}

// alertValue is a cell as JSON would have it: a number or a boolean where it is one, else the text.
func valueOf(cell string) any {
	switch strings.ToLower(cell) {
	case "true", "yes":
		return true
	case "false", "no":
		return false
	}
	if number := json.Number(cell); json.Valid([]byte(cell)) && strings.IndexAny(cell, "-0123456789") == 0 {
		return number
	}
	return cell
}

// Parse reads a body of Next. Complaints name the columns.
func (t *CSV) Parse(body []byte, now time.Time) (Event, error) {
	event, err := t.rules.Parse(body, now)
	return event, renamed(err, func(field string) string { return strings.TrimPrefix(field, "values.") })
}
