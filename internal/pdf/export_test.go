package pdf

import (
	"bytes"
	"regexp"
)

var pageContent = regexp.MustCompile(`(?s)\nstream\n(.*?)\nendstream`)

// TextsByPage finishes the document and returns how many pieces of text each page has.
func (d *Document) TextsByPage() (counts []int, err error) {
	d.pdf.SetCompression(false)
	out, err := d.Bytes()
	for _, stream := range pageContent.FindAllSubmatch(out, -1) {
		if n := bytes.Count(stream[1], []byte("Tj ET")); n > 0 {
			counts = append(counts, n)
		}
	}
	return counts, err
}

// Columns returns the widths of columns in millimeters, and the width of the page.
func (d *Document) Columns(headings []string, shares []float64) ([]float64, float64) {
	return d.columns(headings, shares, nil), d.width
}

// CellLines returns the lines of the cells of a row in a table.
func (d *Document) CellLines(headings []string, shares []float64, rows [][]string) (lines [][]string) {
	widths := d.columns(headings, shares, rows)
	for i, text := range rows[0] {
		lines = append(lines, d.cell(text, widths[i]))
	}
	return lines
}
