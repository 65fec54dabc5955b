package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
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

// table gathers the rows.
type table struct{ rows []row }

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

// writeCSV leaves the table under a comment that says where it was measured.
func (t *table) writeCSV(file, print string) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "# %s\n", print)
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
