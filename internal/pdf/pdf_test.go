package pdf_test

import (
	"bytes"
	"fmt"
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
