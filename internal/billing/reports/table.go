package reports

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vigilhealth/vigil/internal/billing"
)

// Cell is a field of a table row as text. HasFreeText means that it may contain text entered by users; numbers are never formulas.
type Cell struct {
	Text        string
	HasFreeText bool
}

// Table is a report as rows, for CSV and PDF.
type Table struct {
	Columns []string
	Rows    [][]Cell
}

// Table returns the main table of a report: the first list of rows of its body; a body without one is a single row. Source: docs/decisions/billing.md,
// "Report parameters (all 13)".
func (r Report) Table() Table {
	if r.Body == nil {
		return Table{}
	}
	body := reflect.ValueOf(r.Body)
	for _, member := range body.Fields() {
		if member.Kind() == reflect.Slice && member.Type().Elem().Kind() == reflect.Struct {
			return tableOf(member)
		}
	}
	return tableOf(reflect.Append(reflect.MakeSlice(reflect.SliceOf(body.Type()), 0, 1), body))
}

// SelectColumns returns some columns in the given order; unknown is the first that does not exist.
func (t Table) SelectColumns(columns []string) (picked Table, unknown string) {
	places := make([]int, len(columns))
	for i, name := range columns {
		if places[i] = slices.Index(t.Columns, name); places[i] < 0 {
			return Table{}, name
		}
	}
	picked.Columns = columns
	for _, row := range t.Rows {
		cells := make([]Cell, len(places))
		for i, place := range places {
			cells[i] = row[place]
		}
		picked.Rows = append(picked.Rows, cells)
	}
	return picked, ""
}

// tableOf reads rows of one struct type: a column for each JSON member, under its JSON name.
func tableOf(rows reflect.Value) (t Table) {
	kind := rows.Type().Elem()
	var fields []int
	for i := range kind.NumField() {
		if name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			fields, t.Columns = append(fields, i), append(t.Columns, name)
		}
	}
	for n := range rows.Len() {
		cells := make([]Cell, len(fields))
		for i, field := range fields {
			cells[i] = cellOf(rows.Index(n).Field(field))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func cellOf(v reflect.Value) Cell {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return Cell{}
		}
		v = v.Elem()
	}
	if s, ok := v.Interface().(fmt.Stringer); ok {
		return Cell{Text: s.String(), HasFreeText: v.Kind() == reflect.Struct}
	}
	switch v.Kind() {
	case reflect.String:
		return Cell{Text: v.String(), HasFreeText: true}
	case reflect.Float64:
		return Cell{Text: strconv.FormatFloat(v.Float(), 'f', -1, 64)}
	case reflect.Slice:
		texts := make([]string, v.Len())
		for i := range texts {
			texts[i] = cellOf(v.Index(i)).Text
		}
		return Cell{Text: strings.Join(texts, "; "), HasFreeText: true}
	}
	return Cell{Text: fmt.Sprint(v.Interface())}
}

// Chart returns labels and amounts in dollars for a bar chart; both are empty for a report without a chart.
func (r Report) Chart() (title string, labels []string, amounts []float64) {
	add := func(label string, amount billing.Cents) {
		labels, amounts = append(labels, label), append(amounts, float64(amount)/100)
	}
	switch body := r.Body.(type) {
	case ExecutiveBody:
		for _, m := range body.MonthOverMonth {
			add(m.Month, m.Revenue)
		}
		return "Revenue by month", labels, amounts
	case TrendBody:
		for _, m := range body.Results {
			add(m.Month, m.Revenue)
		}
		return "Revenue by month", labels, amounts
	case RevenueBody:
		for _, c := range body.ByCPT {
			add(c.CPTCode, c.Revenue)
		}
		return "Revenue by code", labels, amounts
	case AgingBody:
		for _, b := range body.Buckets {
			add(b.Bucket, b.Amount)
		}
		return "Open claims by days", labels, amounts
	}
	return "", nil, nil
}
