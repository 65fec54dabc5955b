package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// aim is the target of a figure: the minimum, and the goal. Zero means no target.
// Source: docs/performance.md, "Targets".
type aim struct{ floor, goal float64 }

// row is one line of the table: the figures, the comparison, and the value that the targets apply to.
type row struct {
	path    string
	clients int
	figures
	against string  // the name of other, empty for none
	other   figures // of the server compared with
	value   float64
	unit    string // × and % are better when higher, times and sizes when lower
	aim
	note string
}

// higher reports whether more of the row's unit is better.
func (r row) higher() bool { return r.unit == "×" || r.unit == "%" }

func (r row) targetMet() string {
	reached := func(limit float64) bool {
		if r.higher() {
			return r.value >= limit
		}
		return r.value <= limit
	}
	switch {
	case r.floor == 0:
		return ""
	case reached(r.goal):
		return "goal"
	case reached(r.floor):
		return "floor"
	default:
		return "below"
	}
}

var columns = []string{"path", "clients", "p50 ms", "p95 ms", "p99 ms", "max ms", "per s", "failed", "against", "its p50 ms", "its per s", "figure", "floor", "goal", "", "note"}

func formatMS(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000)
}

// formatNumber formats a number with its significant digits, and zero as nothing.
func formatNumber(n float64) string {
	switch {
	case n == 0:
		return ""
	case n >= 100:
		return fmt.Sprintf("%.0f", n)
	case n >= 10:
		return fmt.Sprintf("%.1f", n)
	default:
		return fmt.Sprintf("%.2f", n)
	}
}

func (r row) cells() []string {
	with := func(n float64) string {
		if n == 0 {
			return ""
		}
		return formatNumber(n) + " " + r.unit
	}
	clients, failed := "", ""
	if r.clients > 0 {
		clients = fmt.Sprint(r.clients)
	}
	if r.failed+r.other.failed > 0 {
		failed = fmt.Sprintf("%d, %d", r.failed, r.other.failed)
	}
	return []string{
		r.path, clients, formatMS(r.p50), formatMS(r.p95), formatMS(r.p99), formatMS(r.max), formatNumber(r.perSecond), failed,
		r.against, formatMS(r.other.p50), formatNumber(r.other.perSecond), with(r.value), with(r.floor), with(r.goal), r.targetMet(), r.note,
	}
}

// table holds the rows and the remarks above them.
type table struct {
	rows    []row
	remarks []string
}

// remark prints a remark and stores it for the head of the file.
func (t *table) remark(format string, args ...any) {
	t.remarks = append(t.remarks, fmt.Sprintf(format, args...))
	fmt.Println(t.remarks[len(t.remarks)-1])
}

// add prints a row and stores it.
func (t *table) add(r row) {
	t.rows = append(t.rows, r)
	cells := slices.DeleteFunc(r.cells(), func(cell string) bool { return cell == "" })
	fmt.Println(" ", strings.Join(cells, "  "))
}

func (t *table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(columns, "\t"))
	for _, r := range t.rows {
		fmt.Fprintln(w, strings.Join(r.cells(), "\t"))
	}
	_ = w.Flush() // to a terminal
}

// writeCSV writes the table, with the fingerprint and the remarks as comments above it.
func (t *table) writeCSV(file, print string) error {
	var text bytes.Buffer
	for _, line := range append([]string{print}, t.remarks...) {
		fmt.Fprintf(&text, "# %s\n", line)
	}
	w := csv.NewWriter(&text)
	if err := w.Write(columns); err != nil {
		return err
	}
	for _, r := range t.rows {
		if err := w.Write(r.cells()); err != nil {
			return err
		}
	}
	w.Flush()
	return os.WriteFile(file, text.Bytes(), 0o600)
}

// Dimensions of the chart, in its own units.
const (
	chartLeft  = 330
	chartWidth = 420
	chartLine  = 24
)

// writeChart draws each ratio as a bar on a logarithmic scale, with a dashed line at 1 and a thick red line at its floor.
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
		fmt.Fprintf(&s, `<rect x="%d" y="%d" width="%.0f" height="%d" fill="#0f6e78"/>`, chartLeft, y+3, barLength(r.value), chartLine-6)
		if r.floor > 0 {
			fmt.Fprintf(&s, `<path d="M%.0f %dv%d" stroke="#a8171f" stroke-width="3"/>`, chartLeft+barLength(r.floor), y, chartLine)
		}
		fmt.Fprintf(&s, `<text x="%.0f" y="%d">%s</text>`, chartLeft+max(barLength(r.value), barLength(r.floor))+6, y+16, formatNumber(r.value))
	}
	fmt.Fprintf(&s, `<path d="M%.0f 28v%d" stroke="#16202a" stroke-dasharray="3"/></svg>`+"\n", chartLeft+barLength(1), height-40)
	return os.WriteFile(file, s.Bytes(), 0o600)
}

// barLength is the length of a bar: 0.1 has no length, 10,000 the full width.
func barLength(ratio float64) float64 {
	return chartWidth * min(max((math.Log10(max(ratio, .01))+1)/5, 0), 1)
}
