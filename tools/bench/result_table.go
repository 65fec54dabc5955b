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

// aim is what a figure should reach: the least that will do, and where we are going. Zero asks for nothing.
// Source: docs/performance.md, "Targets".
type aim struct{ floor, goal float64 }

// row is one line of the table: what was measured, what it is compared with, and the figure that the aims are about.
type row struct {
	path    string
	clients int
	figures
	against string  // what other is, empty for nothing
	other   figures // of the server compared with
	value   float64
	unit    string // × and % are the better the higher; times and sizes the lower
	aim
	note string
}

// higher says whether more of the row's unit is better.
func (r row) higher() bool { return r.unit == "×" || r.unit == "%" }

func (r row) verdict() string {
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

func ms(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000)
}

// short is a number with as many digits as matter, nothing for zero.
func short(n float64) string {
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
		return short(n) + " " + r.unit
	}
	clients, failed := "", ""
	if r.clients > 0 {
		clients = fmt.Sprint(r.clients)
	}
	if r.failed+r.other.failed > 0 {
		failed = fmt.Sprintf("%d, %d", r.failed, r.other.failed)
	}
	return []string{
		r.path, clients, ms(r.p50), ms(r.p95), ms(r.p99), ms(r.max), short(r.perSecond), failed,
		r.against, ms(r.other.p50), short(r.other.perSecond), with(r.value), with(r.floor), with(r.goal), r.verdict(), r.note,
	}
}

// table gathers the rows, and what a reader of them should know.
type table struct {
	rows []row
	said []string
}

// say shows a remark, which stands above the rows of the file.
func (t *table) say(format string, args ...any) {
	t.said = append(t.said, fmt.Sprintf(format, args...))
	fmt.Println(t.said[len(t.said)-1])
}

// add shows a row as soon as it is there.
func (t *table) add(r row) {
	t.rows = append(t.rows, r)
	said := slices.DeleteFunc(r.cells(), func(cell string) bool { return cell == "" })
	fmt.Println(" ", strings.Join(said, "  "))
}

func (t *table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(columns, "\t"))
	for _, r := range t.rows {
		fmt.Fprintln(w, strings.Join(r.cells(), "\t"))
	}
	_ = w.Flush() // to a terminal
}

// writeCSV leaves the table under comments that say where it was measured, and what else is to be known.
func (t *table) writeCSV(file, print string) error {
	var text bytes.Buffer
	for _, line := range append([]string{print}, t.said...) {
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
