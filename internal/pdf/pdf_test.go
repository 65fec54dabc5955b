package pdf_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/pdf"
)

func TestTable(t *testing.T) {
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	var rows [][]string
	for i := range 300 {
		rows = append(rows, []string{fmt.Sprint(i), strings.Repeat("Łódź żółw ", 20), strings.Repeat("x", 300), "emoji 🩺 \x01 gone"})
	}
	d := pdf.New("Evidence", "2026-01-01 to 2026-01-30", now)
	d.Heading("Empty")
	d.Table([]string{"a", "b"}, nil, nil)
	d.Heading("Long")
	d.Table([]string{"#", "words", "no spaces", "odd"}, []float64{1, 4, 4, 2}, rows)
	out, err := d.Bytes()
	if err != nil || !bytes.HasPrefix(out, []byte("%PDF-")) || !bytes.Contains(out, []byte("%%EOF")) {
		t.Fatalf("no PDF: %v", err)
	}
	if pages := bytes.Count(out, []byte("/Type /Page\n")); pages < 20 {
		t.Errorf("300 tall rows stand on %d pages", pages)
	}
	again := pdf.New("Evidence", "2026-01-01 to 2026-01-30", now)
	if b, err := again.Bytes(); err != nil || len(b) > len(out) {
		t.Errorf("a short paper has %d bytes: %v", len(b), err)
	}
}

// A chart of few or many bars stays on its page; no amounts, or zeros, are not an error.
func TestBars(t *testing.T) {
	for _, n := range []int{0, 1, 12, 61, 1000} {
		d := pdf.New("Trend", "2020-01-01 to 2024-12-31", time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC))
		labels, amounts := make([]string, n), make([]float64, n)
		for i := range n {
			labels[i], amounts[i] = fmt.Sprintf("2020-%02d", i), float64(i*i)
		}
		d.Bars("Revenue by month", labels, amounts)
		d.Bars("Zeros", []string{"a"}, []float64{0})
		d.Bars("Not as many", []string{"a"}, nil)
		out, err := d.Bytes()
		if err != nil || bytes.Count(out, []byte("/Type /Page\n")) != 1 {
			t.Errorf("%d bars take %d pages: %v", n, bytes.Count(out, []byte("/Type /Page\n")), err)
		}
	}
}

// Wherever a section begins on a page, every page has a heading row with at least one row below it, and no page is empty.
func TestEveryPageHasContent(t *testing.T) {
	headings := []string{"id", "recorded at", "event", "duration seconds"}
	for n := range 61 {
		for _, before := range []int{n * 7 % 42, 30 + n%12} {
			d := pdf.New("Evidence", "2026-01-01 to 2026-01-30", time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC))
			for range before {
				d.Paragraph("A line.")
			}
			d.Heading("Section")
			rows := make([][]string, n)
			for i := range rows {
				rows[i] = []string{"1", "now", "read", strings.Repeat("long ", 40)}
			}
			d.Table(headings, nil, rows)
			counts, err := d.TextsByPage()
			if err != nil {
				t.Fatal(err)
			}
			footer := 2
			if len(counts) == 0 {
				t.Fatal("no text was found")
			}
			for page, count := range counts {
				if page > 0 && n > 0 && count < footer+2*len(headings) {
					t.Errorf("%d rows after %d lines: the pages have %v texts", n, before, counts)
				}
			}
			if full := (before*5 + n*23) / 150; len(counts) > full+2 {
				t.Errorf("%d rows after %d lines take %d pages", n, before, len(counts))
			}
		}
	}
}

// No page is empty in a packet of several tables with 1 to 60 rows of any height, from one word to more than half a page, and any number of columns.
func TestNoEmptyPage(t *testing.T) {
	r := rand.New(rand.NewPCG(60, 1))
	for n := 1; n <= 60; n++ {
		d := pdf.New("Evidence", "2026-01-01 to 2026-01-30", time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC))
		for section := range 1 + r.IntN(2) {
			if r.IntN(3) == 0 {
				d.Paragraph(strings.Repeat("A line of a paragraph. ", r.IntN(60)))
			}
			d.Heading(fmt.Sprint("Section ", section))
			headings := make([]string, 1+r.IntN(14))
			for i := range headings {
				headings[i] = "duration seconds"
			}
			rows := make([][]string, n)
			for i := range rows {
				for range headings {
					rows[i] = append(rows[i], strings.Repeat("word ", []int{0, 1, 1, 3, 3, 25, 60}[r.IntN(7)]))
				}
				rows[i][0] = "1"
			}
			d.Table(headings, nil, rows)
		}
		counts, err := d.TextsByPage()
		if err != nil {
			t.Fatal(err)
		}
		const footer = 2
		for page, count := range counts {
			if count <= footer+1 {
				t.Errorf("%d rows: page %d of %d has %d texts", n, page+1, len(counts), count)
			}
		}
	}
}

// No heading breaks within a word, also among fourteen columns; where the words do not fit on the page, the shares decide.
func TestColumnsFitTheirHeadings(t *testing.T) {
	d := pdf.New("Evidence", "", time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC))
	headings := strings.Split("id,started at,ended at,duration seconds,category,activity,contact method,source,author,notes,recorded at,person,attested by,attested at", ",")
	for _, shares := range [][]float64{nil, {1, 30, 30}, {0.001, 1, 1, 0.001, 1, 1, 1, 1, 40}} {
		widths, page := d.Columns(headings, shares)
		sum := 0.0
		for i, width := range widths {
			if sum += width; width < 2.2+float64(len(strings.Fields(headings[i])[0])) {
				t.Errorf("%s has %.1f mm", headings[i], width)
			}
		}
		if sum < page-0.01 || sum > page+0.01 {
			t.Errorf("%v fill %.1f of %.1f mm", widths, sum, page)
		}
	}
	long := []string{strings.Repeat("x", 100), strings.Repeat("y", 100)}
	if widths, page := d.Columns(long, []float64{1, 3}); widths[0] != page/4 || widths[1] != page*3/4 {
		t.Errorf("two long headings take %v", widths)
	}
}

// An id breaks at its hyphens and an instant before its clock time, and only where a table has no room for them.
func TestIdsAndOffsetsStayWhole(t *testing.T) {
	id, at := "0194c5a8-0000-7000-8000-000000000002", "2026-01-15T08:45:00-05:00"
	for columns := 2; columns <= 10; columns++ {
		row, headings := []string{}, []string{}
		for i := range columns {
			row, headings = append(row, []string{id, at, "Two words"}[i%3]), append(headings, fmt.Sprint("Heading", i))
		}
		for i, lines := range pdf.New("T", "", time.Unix(0, 0)).CellLines(headings, nil, [][]string{row}) {
			for n, line := range lines[:len(lines)-1] {
				if next := lines[n+1]; !strings.HasSuffix(line, "-") && !strings.HasPrefix(next, "T") && row[i] != "Two words" || strings.HasPrefix(row[i], "2026") && len(lines) > 2 {
					t.Errorf("%d columns: %q", columns, lines)
				}
			}
			if strings.Join(lines, "") != strings.ReplaceAll(row[i], " ", "") && len(lines) > 1 {
				t.Errorf("%d columns: lost text in %q", columns, lines)
			}
		}
	}
}
