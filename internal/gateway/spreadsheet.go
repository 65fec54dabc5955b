package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"
)

// checkForm rejects a file that is not text, by its first bytes after a byte order mark.
func checkForm(first []byte) error {
	switch {
	case bytes.HasPrefix(first, []byte("PK\x03\x04")), bytes.HasPrefix(first, []byte("\xd0\xcf\x11\xe0")):
		return errors.New("this is a spreadsheet's own file (such as .xlsx), not a table of text: save it as CSV UTF-8")
	case bytes.IndexByte(first, 0) >= 0:
		return errors.New("this is UTF-16 without its byte order mark, or no text: save the table as CSV UTF-8")
	case bytes.IndexByte(first, '\n') < 0 && bytes.IndexByte(first, '\r') >= 0:
		return errBareReturn
	}
	return nil
}

var errBareReturn = errors.New("the lines end with a carriage return alone, as on old Macintosh computers: save the table as CSV UTF-8")

// endMark is what DOS programs write at the end of a text.
const endMark = "\x1a"

var (
	// formulaText is an unquoted cell ="00123", by which programs keep a spreadsheet from reading a number.
	formulaText = regexp.MustCompile(`(^|[,;\t])="([^"\r\n]*)"([,;\t\r\n]|$)`)
	// spreadsheetError is what a spreadsheet saves for a failed formula, or for a number in too narrow a column.
	spreadsheetError = regexp.MustCompile(`^#(N/A|NV|[A-Z/0]+[!?]|#+)$`)
	// shortenedNumber is what a spreadsheet makes of a long number: 8.60E+14.
	shortenedNumber = regexp.MustCompile(`^\d([.,]\d+)?[eE]\+\d+$`)
)

// formulaTexts reads lines with each cell ="00123" as "00123", without an end mark.
type formulaTexts struct {
	lines *bufio.Reader
	line  []byte
}

// Read reads the rest of a line.
func (f *formulaTexts) Read(p []byte) (int, error) {
	if len(f.line) == 0 {
		line, err := f.lines.ReadBytes('\n')
		if err != nil { // the last line
			line = bytes.TrimRight(line, endMark)
		} else if bytes.HasPrefix(line, []byte(endMark)) {
			line = bytes.TrimLeft(line, endMark)
		}
		if len(line) == 0 {
			return 0, err //nolint:wrapcheck // io.EOF
		}
		for range 2 { // neighbors share a separator
			line = formulaText.ReplaceAll(line, []byte(`$1"$2"$3`))
		}
		f.line = line
	}
	n := copy(p, f.line)
	f.line = f.line[n:]
	return n, nil
}

// textOf returns the text of a quoted cell ="00123".
func textOf(cell string) string {
	if inner, isFormula := strings.CutPrefix(cell, `="`); isFormula && len(inner) > 0 && strings.HasSuffix(inner, `"`) {
		return strings.TrimSpace(strings.TrimSuffix(inner, `"`))
	}
	return cell
}

// isDecodable reports whether every character of a text could be decoded.
func isDecodable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, utf8.RuneError)
}

// unusableReason returns why a cell is no value of its column; "" if it may be one. Source: docs/decisions/gateway.md, "Tables of readings".
func unusableReason(column, cell string) string {
	isID := column == "device_id" || column == "patient_id"
	switch {
	case !isDecodable(cell):
		return "This text is not in UTF-8. Save the table as CSV UTF-8."
	case spreadsheetError.MatchString(cell):
		return "A spreadsheet's error (" + cell + ") is here instead of a value. Correct the cell and save the table again."
	case isID && strings.HasPrefix(cell, "="):
		return "A spreadsheet's formula is here instead of a value. Save the table with values."
	case isID && shortenedNumber.MatchString(cell):
		return "A spreadsheet shortened this number. Format the column as text and save the table again."
	}
	return ""
}
