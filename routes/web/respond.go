package web

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/vigilhealth/vigil/internal/validate"
)

const JSONType = "application/json"

// OK answers 200 with a value, encoded as JSON.
func (c *Call) OK(value any) error { return c.JSON(http.StatusOK, value) }

// OKEncoded answers 200 with a body that [Encode] made.
func (c *Call) OKEncoded(body []byte) error { return c.Send(http.StatusOK, JSONType, body) }

// Respond is OK for a function's result, or returns its error.
func (c *Call) Respond(value any, err error) error {
	if err != nil {
		return err
	}
	return c.OK(value)
}

// Created answers 201.
func (c *Call) Created(value any) error { return c.JSON(http.StatusCreated, value) }

// NoContent answers 204, or returns the error.
func (c *Call) NoContent(err error) error {
	if err != nil {
		return err
	}
	if err := c.stillHeld(); err != nil {
		return err
	}
	c.response.WriteHeader(http.StatusNoContent)
	return nil
}

// NotModified answers 304.
func (c *Call) NotModified() error {
	c.response.WriteHeader(http.StatusNotModified)
	return nil
}

// JSON answers with the given status.
func (c *Call) JSON(status int, value any) error {
	body, err := Encode(value)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	return c.Send(status, JSONType, body)
}

// Attach answers 200 with a file to save, such as a CSV export.
func (c *Call) Attach(contentType, filename string, body []byte) error {
	c.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": filename}))
	return c.Send(http.StatusOK, contentType, body)
}

// Send answers with an encoded body.
func (c *Call) Send(status int, contentType string, body []byte) error {
	if status < http.StatusBadRequest {
		if err := c.stillHeld(); err != nil {
			return err
		}
	}
	h := c.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.response.WriteHeader(status)
	if c.Request.Method == http.MethodHead {
		return nil
	}
	if _, err := c.response.Write(body); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// Encode writes JSON without HTML escapes: answers are never HTML, and a name may contain "&".
func Encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// Generic parts of handlers: decode a body and read its values; answer with the result of an engine.

// Read decodes a body and reads its values; the error names every invalid field.
func Read[B, V any](c *Call, read func(B, *validate.Checks) V) (V, error) {
	return readBy(c.Decode, read)
}

// ReadOptional is Read with an optional body.
func ReadOptional[B, V any](c *Call, read func(B, *validate.Checks) V) (V, error) {
	return readBy(c.DecodeOptional, read)
}

func readBy[B, V any](decode func(any) error, read func(B, *validate.Checks) V) (value V, err error) {
	var body B
	if err := decode(&body); err != nil {
		return value, err
	}
	checks := validate.NewChecks()
	value = read(body, checks)
	return value, checks.Err()
}

// RespondWith answers with a view of a function's result, or returns its error.
func RespondWith[T, V any](answer func(any) error, view func(T) V) func(T, error) error {
	return func(value T, err error) error {
		if err != nil {
			return err
		}
		return answer(view(value))
	}
}

// Map renders each row.
func Map[T, V any](rows []T, view func(T) V) []V {
	views := make([]V, len(rows))
	for i, row := range rows {
		views[i] = view(row)
	}
	return views
}

const csvType = "text/csv; charset=utf-8"

// CSVSafe keeps a spreadsheet from reading a cell, or a part of it, as a formula. Spreadsheets fold full-width signs
// and skip invisible characters, and with a decimal comma they split cells at semicolons, which RFC 4180 does not
// quote. Source: docs/decisions/billing.md, "Claims export".
func CSVSafe(cell string) string {
	var safe strings.Builder
	written := 0
	for at, start := 0, true; at < len(cell); {
		r, size := utf8.DecodeRuneInString(cell[at:])
		switch parts := strings.ContainsRune(";\t\r\n", r); {
		case start && (opensFormula(r) || at == 0 && parts && r != ';'):
			safe.WriteString(cell[written:at] + "'")
			written, start = at, parts
		case parts:
			start = true
		case start && !isSkipped(r):
			start = false
		}
		at += size
	}
	return safe.String() + cell[written:]
}

// opensFormula recognizes the formula signs in all their Unicode widths and heights.
func opensFormula(r rune) bool {
	if r < utf8.RuneSelf {
		return strings.ContainsRune("=+-@", r)
	}
	folded := norm.NFKC.String(string(r))
	return r == '\u2212' || len(folded) == 1 && strings.Contains("=+-@", folded)
}

// isSkipped reports whether a spreadsheet may skip the character before a formula sign: white space and invisible
// characters.
func isSkipped(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == '"' || r == utf8.RuneError ||
		unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Co, unicode.Other_Default_Ignorable_Code_Point)
}

// StartCSV starts a table of any length and streams its rows.
func (c *Call) StartCSV(filename string) *csv.Writer {
	h := c.Header()
	h.Set("Content-Type", csvType)
	h.Set("Content-Disposition", `attachment; filename="`+filename+`"`)
	c.response.WriteHeader(http.StatusOK)
	w := csv.NewWriter(c.response)
	w.UseCRLF = true // RFC 4180
	return w
}

// WriteSafe writes one row with [CSVSafe] cells.
func WriteSafe(w *csv.Writer, cells ...string) error {
	for i, cell := range cells {
		cells[i] = CSVSafe(cell)
	}
	return w.Write(cells)
}
