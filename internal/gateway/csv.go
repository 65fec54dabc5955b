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

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Columns of a table of readings: members of the event, and of its values.
var (
	envelopeColumns = []string{"device_id", "patient_id", "measurement_type", "timestamp", "unit", "device_model"}
	valueColumns    = vitals.GatewayFields()
	requiredColumns = []string{"device_id", "patient_id", "measurement_type", "timestamp"}
)

// CSVOptions are the choices in reading a table.
type CSVOptions struct {
	MaxFuture time.Duration
	// Zone applies to times without an offset; nil rejects a table with such times.
	Zone *time.Location
}

// CSV is a table of readings (RFC 4180) with column names in the first line, in any order, also as spreadsheets save it. Each further line is one
// measurement in the gateway's format and under its rules, so a reading has the same identity from any source. A table is not signed: the
// operator who imports the file is responsible for it. Source: docs/decisions/gateway.md, "Tables of readings".
type CSV struct {
	Lines int // with readings

	rules   ContractAdapter
	zone    *time.Location
	table   *csv.Reader
	comma   rune
	skipped int // lines before the column names
	columns []string
}

var _ Parser = (*CSV)(nil)

// OpenCSV reads the table once, to count its lines and find times without a zone, and rewinds it. Unknown, repeated and missing columns are errors.
func OpenCSV(file io.ReadSeeker, o CSVOptions) (*CSV, error) {
	scan, err := readColumns(file, o)
	if err != nil {
		return nil, err
	}
	for {
		line, cells, err := scan.nextLine()
		switch {
		case errors.Is(err, io.EOF):
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return nil, fmt.Errorf("rewind the table: %w", err)
			}
			table, err := readColumns(file, o)
			if err == nil {
				table.Lines = scan.Lines
			}
			return table, err
		case err == nil && o.Zone == nil && !validate.HasZone(cells["timestamp"]):
			return nil, fmt.Errorf("line %d has a time without an offset in column timestamp; name its zone, such as --zone America/Chicago", line)
		}
		if _, refused := errors.AsType[*fault.Error](err); err != nil && !refused {
			return nil, err
		}
		scan.Lines++
	}
}

// readColumns reads the column names. A first line "sep=;", as spreadsheets write it, names the separator; otherwise it is the most frequent of
// comma, semicolon and tab among the names.
func readColumns(file io.Reader, o CSVOptions) (*CSV, error) {
	buffered := bufio.NewReader(transform.NewReader(file, unicode.BOMOverride(transform.Nop))) // UTF-16 only with its mark
	t := &CSV{rules: ContractAdapter{MaxFuture: o.MaxFuture}, zone: o.Zone}
	first, err := buffered.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the column names: %w", err)
	}
	if err := checkForm(first); err != nil {
		return nil, err
	}
	names, _, _ := strings.Cut(string(first), "\n")
	if mark, separator, found := strings.Cut(strings.Trim(names, "\r\" "), "="); found && strings.EqualFold(mark, "sep") && separator != "" {
		t.comma = []rune(separator)[0]
		t.skipped = 1
		_, _ = buffered.Discard(min(len(names)+1, len(first))) // it was just read
	}
	if !slices.Contains(separators, t.comma) {
		t.comma = slices.MaxFunc(separators, func(a, b rune) int { return strings.Count(names, string(a)) - strings.Count(names, string(b)) })
	}
	t.table = csv.NewReader(&formulaTexts{lines: buffered})
	t.table.Comma, t.table.FieldsPerRecord = t.comma, -1
	header, err := t.table.Read()
	if err == nil && !isDecodable(strings.Join(header, "")) {
		err = errors.New("they are not in UTF-8: save the table as CSV UTF-8")
	}
	if err != nil {
		return nil, fmt.Errorf("read the column names: %w", err)
	}
	return t, t.nameColumns(header)
}

var separators = []rune{',', ';', '\t'}

func (c *CSV) nameColumns(header []string) error {
	for i, name := range header {
		name = columnOf(name)
		switch {
		case name == "" && strings.TrimSpace(strings.Join(header[i:], "")) == "": // a spreadsheet's empty columns at the end
			continue
		case !slices.Contains(envelopeColumns, name) && !slices.Contains(valueColumns, name):
			return fmt.Errorf("column %d (%s in a spreadsheet) has an unknown name; known are %s", i+1, letters(i), strings.Join(slices.Concat(envelopeColumns, valueColumns), ", "))
		case slices.Contains(c.columns, name):
			return fmt.Errorf("column %s is repeated", name)
		}
		c.columns = append(c.columns, name)
	}
	for _, name := range requiredColumns {
		if !slices.Contains(c.columns, name) {
			return fmt.Errorf("column %s is missing", name)
		}
	}
	return nil
}

// columnOf returns the column that a name spells, or the name in lower case.
func columnOf(name string) string {
	for _, known := range slices.Concat(envelopeColumns, valueColumns) {
		if fold(known) == fold(name) {
			return known
		}
	}
	return strings.ToLower(strings.TrimSpace(name))
}

// letters returns a spreadsheet's name of a column, from 0: A, Z, AA.
func letters(i int) string {
	if i < 26 {
		return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i : i+1]
	}
	return letters(i/26-1) + letters(i%26)
}

// nextLine returns the filled cells of the next line that has any, by column. A malformed line is a parse_error fault, after which the next can be
// read.
func (c *CSV) nextLine() (line int, cells map[string]string, err error) {
	for {
		row, err := c.table.Read()
		if broken, ok := errors.AsType[*csv.ParseError](err); ok {
			return broken.StartLine + c.skipped, nil, misplacedMark(broken.Err)
		}
		if err != nil {
			return 0, nil, err
		}
		line, _ = c.table.FieldPos(0)
		line += c.skipped
		cells = map[string]string{}
		for i, cell := range row {
			if strings.ContainsRune(strings.TrimSpace(cell), '\r') {
				return line, nil, fmt.Errorf("line %d, column %s: %w", line, letters(i), errBareReturn)
			}
			switch cell = textOf(strings.TrimSpace(cell)); {
			case cell == "":
			case i >= len(c.columns):
				return line, nil, fault.New(fault.Invalid, "parse_error", "The line has more cells than the table has column names: column "+letters(i)+" has none.")
			default:
				cells[c.columns[i]] = cell
			}
		}
		if len(cells) > 0 {
			return line, cells, nil
		}
	}
}

func misplacedMark(why error) error {
	return fault.New(fault.Invalid, "parse_error", "A quotation mark is where none may be: quote the whole cell, and double the marks inside it.").Because(why)
}

// Next returns the next line as the body of an event, and its line number; io.EOF after the last. A line that cannot be read is a fault, after
// which the next can be read.
func (c *CSV) Next() (line int, body []byte, err error) {
	line, cells, err := c.nextLine()
	if err != nil {
		return line, nil, err
	}
	event, values, wrong := map[string]any{"event_type": MeasurementCreated}, map[string]any{}, fault.Fields{}
	for name, cell := range cells {
		switch why := unusableReason(name, cell); {
		case why != "":
			wrong[name] = []string{why}
		case name == "timestamp":
			if event[name], err = c.timeOf(cell); err != nil {
				wrong[name] = []string{err.Error()}
			}
		case slices.Contains(envelopeColumns, name):
			event[name] = cell
		default:
			values[name] = cellValue(c.decimal(cell))
		}
	}
	if len(wrong) > 0 {
		return line, nil, fault.Validation(wrong)
	}
	event["values"] = values
	body, err = json.Marshal(event)
	return line, body, err
}

// timeOf returns a time with its offset. One without an offset is in the table's zone; an hour that
// a clock change skips or repeats is rejected.
func (c *CSV) timeOf(cell string) (string, error) {
	wall, err := validate.ParseInstant(cell)
	if c.zone == nil || err != nil || validate.HasZone(cell) {
		return cell, nil //nolint:nilerr // the gateway's rules refuse it
	}
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), c.zone)
	isSame := func(other time.Time) bool {
		return other.In(c.zone).Format(time.DateTime) == wall.Format(time.DateTime)
	}
	with := func(of time.Time) time.Time { // the wall clock by the offset in force then
		_, offset := of.Zone()
		return wall.Add(-time.Duration(offset) * time.Second)
	}
	before, after := with(at.AddDate(0, 0, -1)), with(at.AddDate(0, 0, 1))
	switch {
	case !isSame(at):
		return "", errors.New("The clocks skipped this time in the zone of the table.") //nolint:staticcheck // shown to a person
	case !before.Equal(after) && isSame(before) && isSame(after):
		return "", errors.New("The clocks showed this time twice in the zone of the table. State its offset.") //nolint:staticcheck // shown to a person
	}
	return at.Format(time.RFC3339Nano), nil
}

var leadingZeros = regexp.MustCompile(`^(-?)0+(\d)`)

// decimal returns a number with a point. Where commas do not separate cells, one in a number is the decimal sign.
func (c *CSV) decimal(cell string) string {
	point := strings.Replace(cell, ",", ".", 1)
	if c.comma == ',' || c.comma == '\t' && thousands.MatchString(cell) || !json.Valid([]byte(leadingZeros.ReplaceAllString(point, "$1$2"))) {
		return cell
	}
	return point
}

// thousands is a number that tables with tabs, which have no decimal sign of their own, may mean in thousands.
var thousands = regexp.MustCompile(`^-?\d{1,3},\d{3}$`)

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
func (c *CSV) Parse(body []byte, now time.Time) (Event, error) {
	event, err := c.rules.Parse(body, now)
	return event, withFieldNames(err, func(field string) string { return strings.TrimPrefix(field, "values.") })
}
