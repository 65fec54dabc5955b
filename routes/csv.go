package routes

import (
	"encoding/csv"
	"net/http"
	"strings"
)

const csvType = "text/csv; charset=utf-8"

// csvSafe keeps a spreadsheet from reading a cell as a formula. Source: docs/decisions.md, "Claims export".
func csvSafe(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

// startCSV begins a table of any length; rows go out as they are written.
func (c *call) startCSV(filename string) *csv.Writer {
	h := c.Header()
	h.Set("Content-Type", csvType)
	h.Set("Content-Disposition", `attachment; filename="`+filename+`"`)
	c.response.WriteHeader(http.StatusOK)
	w := csv.NewWriter(c.response)
	w.UseCRLF = true // RFC 4180
	return w
}

// writeSafe writes one row.
func writeSafe(w *csv.Writer, cells ...string) error {
	for i, cell := range cells {
		cells[i] = csvSafe(cell)
	}
	return w.Write(cells)
}
