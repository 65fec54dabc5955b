package web

import (
	"encoding/csv"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const csvType = "text/csv; charset=utf-8"

// CSVSafe keeps a spreadsheet from reading a cell, or what one makes of a part of it, as a formula. Spreadsheets fold full-width signs
// and skip what nobody sees, and where the decimal sign is a comma they part cells at semicolons, which RFC 4180 does not quote.
// Source: docs/decisions/billing.md, "Claims export".
func CSVSafe(cell string) string {
	var safe strings.Builder
	kept := 0
	for at, start := 0, true; at < len(cell); {
		r, size := utf8.DecodeRuneInString(cell[at:])
		switch parts := strings.ContainsRune(";\t\r\n", r); {
		case start && (opensFormula(r) || at == 0 && parts && r != ';'):
			safe.WriteString(cell[kept:at] + "'")
			kept, start = at, parts
		case parts:
			start = true
		case start && !skipped(r):
			start = false
		}
		at += size
	}
	return safe.String() + cell[kept:]
}

// opensFormula knows the signs in all their widths and heights.
func opensFormula(r rune) bool {
	if r < utf8.RuneSelf {
		return strings.ContainsRune("=+-@", r)
	}
	folded := norm.NFKC.String(string(r))
	return r == '\u2212' || len(folded) == 1 && strings.Contains("=+-@", folded)
}

// skipped is what a spreadsheet may pass over before it looks for a sign: white space and what has no shape.
func skipped(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == '"' || r == utf8.RuneError ||
		unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Co, unicode.Other_Default_Ignorable_Code_Point)
}

// StartCSV begins a table of any length; rows go out as they are written.
func (c *Call) StartCSV(filename string) *csv.Writer {
	h := c.Header()
	h.Set("Content-Type", csvType)
	h.Set("Content-Disposition", `attachment; filename="`+filename+`"`)
	c.response.WriteHeader(http.StatusOK)
	w := csv.NewWriter(c.response)
	w.UseCRLF = true // RFC 4180
	return w
}

// WriteSafe writes one row.
func WriteSafe(w *csv.Writer, cells ...string) error {
	for i, cell := range cells {
		cells[i] = CSVSafe(cell)
	}
	return w.Write(cells)
}
