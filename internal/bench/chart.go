package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"os"
)

// Measures of the chart, in its own units.
const (
	chartLeft  = 330
	chartWidth = 420
	chartLine  = 24
)

// writeChart draws each ratio as a bar on a logarithmic scale, with a thin line where it would equal the other server and
// a thick one at its floor.
func (t *table) writeChart(file string) error {
	var ratios []row
	for _, r := range t.rows {
		if r.unit == "×" {
			ratios = append(ratios, r)
		}
	}
	var s bytes.Buffer
	height := len(ratios)*chartLine + 40
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" fill="#16202a">`, chartLeft+chartWidth+90, height)
	s.WriteString(`<rect width="100%" height="100%" fill="#fff"/><text x="10" y="20" font-weight="bold">How many times the other; logarithmic; red: the floor</text>`)
	for i, r := range ratios {
		y := 30 + i*chartLine
		label := r.path
		if r.clients > 0 {
			label += fmt.Sprintf(", %d", r.clients)
		}
		fmt.Fprintf(&s, `<text x="10" y="%d">%s : %s</text>`, y+16, html.EscapeString(label), html.EscapeString(r.against))
		fmt.Fprintf(&s, `<rect x="%d" y="%d" width="%.0f" height="%d" fill="#0f6e78"/>`, chartLeft, y+3, reach(r.value), chartLine-6)
		if r.floor > 0 {
			fmt.Fprintf(&s, `<path d="M%.0f %dv%d" stroke="#a8171f" stroke-width="3"/>`, chartLeft+reach(r.floor), y, chartLine)
		}
		fmt.Fprintf(&s, `<text x="%.0f" y="%d">%s</text>`, chartLeft+max(reach(r.value), reach(r.floor))+6, y+16, short(r.value))
	}
	fmt.Fprintf(&s, `<path d="M%.0f 28v%d" stroke="#16202a" stroke-dasharray="3"/></svg>`+"\n", chartLeft+reach(1), height-40)
	return os.WriteFile(file, s.Bytes(), 0o600)
}

// reach is the length of a bar: one tenth is nothing, ten thousand is all.
func reach(ratio float64) float64 {
	return chartWidth * min(max((math.Log10(max(ratio, .01))+1)/5, 0), 1)
}
