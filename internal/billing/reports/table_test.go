package reports_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Each report as a table has a row for each row of its body, with the same members in the same order, and marks text columns as text.
func TestTables(t *testing.T) {
	app := vigiltest.NewApp(t)
	p := invent(11, staff(t, app))
	p.plant(t, app)
	e := engine(0)
	rows := map[reports.Name]string{ // the member of the body that is the table
		reports.ExecutiveDashboard: "month_over_month", reports.Revenue: "by_cpt", reports.Aging: "buckets", reports.TasksSummary: "items", reports.QuickStats: "",
	}
	for _, name := range reports.Names() {
		r, err := e.Build(app, name, reports.Query{}, "admin", false, p.now)
		if err != nil {
			t.Fatal(err)
		}
		if name.Title() == "" {
			t.Errorf("%s has no title", name)
		}
		member, special := rows[name]
		if !special {
			member = "results"
		}
		raw, err := json.Marshal(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		var body map[string]json.RawMessage
		var want []map[string]any
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Fatal(err)
		}
		if member == "" {
			body[member] = json.RawMessage("[" + string(raw) + "]")
		}
		if err := json.Unmarshal(body[member], &want); err != nil {
			t.Fatalf("%s has no %s: %v", name, member, err)
		}
		table := r.Table()
		if len(table.Rows) != len(want) {
			t.Errorf("%s: %d rows of %d", name, len(table.Rows), len(want))
			continue
		}
		for i, row := range want {
			members := slices.DeleteFunc(slices.Clone(table.Columns), func(column string) bool {
				_, shown := row[column]
				return column == "history" && !shown // with one patient only
			})
			if keys := slices.Sorted(maps.Keys(row)); !slices.Equal(keys, slices.Sorted(slices.Values(members))) {
				t.Fatalf("%s has the columns %v, and the members %v", name, table.Columns, keys)
			}
			for j, column := range table.Columns {
				checkCell(t, string(name)+"."+column, table.Rows[i][j], row[column])
			}
		}
	}
}

// checkCell compares a cell with the member it shows.
func checkCell(t *testing.T, what string, cell reports.Cell, member any) {
	t.Helper()
	switch value := member.(type) {
	case nil:
		if cell.Text != "" {
			t.Errorf("%s: %q for nothing", what, cell.Text)
		}
	case string:
		if cell.Text != value || value != "" && !cell.HasFreeText && !strings.ContainsAny(value, "0123456789") {
			t.Errorf("%s: %+v for %q", what, cell, value)
		}
	case float64:
		var shown float64
		if _, err := fmt.Sscan(cell.Text, &shown); err != nil || shown != value || cell.HasFreeText {
			t.Errorf("%s: %+v for %v", what, cell, value)
		}
	case []any:
		if got := strings.Count(cell.Text, ";"); got != max(0, len(value)-1) || !cell.HasFreeText {
			t.Errorf("%s: %+v for %v", what, cell, value)
		}
	case bool:
		if cell.Text != fmt.Sprint(value) {
			t.Errorf("%s: %q for %v", what, cell.Text, value)
		}
	}
}

// Columns are selected in the requested order; an unknown column is an error that names it.
func TestSelectColumns(t *testing.T) {
	table := reports.Table{Columns: []string{"a", "b", "c"}, Rows: [][]reports.Cell{{{Text: "1"}, {Text: "2"}, {Text: "3"}}, {{Text: "4"}, {Text: "5"}, {Text: "6"}}}}
	picked, unknown := table.SelectColumns([]string{"c", "a"})
	if got := fmt.Sprint(picked.Columns, picked.Rows); unknown != "" || got != "[c a] [[{3 false} {1 false}] [{6 false} {4 false}]]" {
		t.Errorf("picked %s, %s", got, unknown)
	}
	if picked, unknown = table.SelectColumns([]string{"a", "d", "e"}); unknown != "d" || picked.Columns != nil {
		t.Errorf("picked %v, %s", picked, unknown)
	}
	if empty := (reports.Report{}).Table(); empty.Columns != nil {
		t.Errorf("no report has %v", empty)
	}
}

// A chart has a bar for each row of its table; a report without a chart has none.
func TestBars(t *testing.T) {
	app := vigiltest.NewApp(t)
	p := invent(12, staff(t, app))
	p.plant(t, app)
	column := map[reports.Name][2]string{
		reports.ExecutiveDashboard: {"month", "revenue"}, reports.MonthlyTrend: {"month", "revenue"}, reports.Revenue: {"cpt_code", "revenue"}, reports.Aging: {"bucket", "amount"},
	}
	for _, name := range reports.Names() {
		r, err := engine(0).Build(app, name, reports.Query{}, "admin", false, p.now)
		if err != nil {
			t.Fatal(err)
		}
		title, labels, amounts := r.Chart()
		columns, pictured := column[name]
		if pictured != (title != "") || len(labels) != len(amounts) {
			t.Errorf("%s: %q with %d labels and %d amounts", name, title, len(labels), len(amounts))
		}
		if !pictured {
			continue
		}
		table, unknown := r.Table().SelectColumns(columns[:])
		if unknown != "" || len(table.Rows) != len(labels) || len(labels) == 0 {
			t.Fatalf("%s: %s, %d rows, %d bars", name, unknown, len(table.Rows), len(labels))
		}
		for i, row := range table.Rows {
			if labels[i] != row[0].Text || fmt.Sprintf("%.2f", amounts[i]) != row[1].Text {
				t.Errorf("%s: the bar %s of %v, the row %v", name, labels[i], amounts[i], row)
			}
		}
	}
}

// Expensive reports are cached for one role and request; other reports, and those requested with fresh data, are computed again.
func TestCache(t *testing.T) {
	app := vigiltest.NewApp(t)
	p := invent(13, staff(t, app))
	p.plant(t, app)
	e := engine(5 * time.Minute)
	cached := func(name reports.Name, q reports.Query, role string, anew bool, at time.Time) bool {
		t.Helper()
		r, err := e.Build(app, name, q, role, anew, at)
		if err != nil {
			t.Fatal(err)
		}
		return r.Cached
	}
	kept := map[reports.Name]bool{reports.ExecutiveDashboard: true, reports.PayerPerformance: true, reports.MonthlyTrend: true}
	for _, name := range reports.Names() {
		if cached(name, reports.Query{}, "admin", false, p.now) || cached(name, reports.Query{}, "admin", false, p.now) != kept[name] {
			t.Errorf("%s: kept is not %v", name, kept[name])
		}
	}
	self := ""
	for name, test := range map[string]struct {
		q    reports.Query
		role string
		anew bool
		at   time.Duration
		want bool
	}{
		"the same":            {reports.Query{}, "admin", false, 5*time.Minute - 1, true},
		"another role":        {reports.Query{}, "data_monitor", false, time.Minute, false},
		"another code":        {reports.Query{CPTCode: "99457"}, "admin", false, time.Minute, false},
		"another patient":     {reports.Query{PatientID: "x"}, "admin", false, time.Minute, false},
		"other dates":         {reports.Query{From: p.now.AddDate(0, -2, 0).Format(time.DateOnly)}, "admin", false, time.Minute, false},
		"self-pay, not any":   {reports.Query{Payer: &self}, "admin", false, time.Minute, false},
		"no provider, or any": {reports.Query{Provider: &self}, "admin", false, time.Minute, false},
	} {
		if cached(reports.MonthlyTrend, test.q, test.role, test.anew, p.now.Add(test.at)) != test.want {
			t.Errorf("%s: kept is not %v", name, test.want)
		}
	}
	if cached(reports.MonthlyTrend, reports.Query{}, "admin", true, p.now.Add(4*time.Minute)) {
		t.Error("a fresh request returns a cached report")
	}
	if !cached(reports.MonthlyTrend, reports.Query{}, "admin", false, p.now.Add(8*time.Minute)) {
		t.Error("the fresh report is not cached")
	}
	if cached(reports.MonthlyTrend, reports.Query{}, "admin", false, p.now.Add(9*time.Minute)) {
		t.Error("five minutes later an old one comes")
	}
	if _, err := e.Build(app, "no-such", reports.Query{}, "admin", false, p.now); err == nil {
		t.Error("a report that there is not")
	}
}

// Of more than 256 cached requests the oldest are evicted, and the newest stays.
func TestCacheIsBounded(t *testing.T) {
	app, e := vigiltest.NewApp(t), engine(time.Hour)
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	ask := func(n int, at time.Time) bool {
		t.Helper()
		r, err := e.Build(app, reports.PayerPerformance, reports.Query{PatientID: fmt.Sprint(n)}, "admin", false, at)
		if err != nil {
			t.Fatal(err)
		}
		return r.Cached
	}
	for n := range 257 {
		ask(n, now.Add(time.Duration(n)*time.Second))
	}
	end := now.Add(257 * time.Second)
	if !ask(256, end) || !ask(1, end) || ask(0, end) {
		t.Error("not the oldest one was forgotten")
	}
	if later := now.Add(time.Hour + 250*time.Second); ask(1000, later) || !ask(256, later) || ask(2, later) {
		t.Error("what is too old was not forgotten, or what is not was")
	}
}

// The report of unbilled activity matches the engine, including the sum.
func TestUnbilledReport(t *testing.T) {
	app := vigiltest.NewApp(t)
	nurse := vigiltest.User(t, app, "nurse")
	for _, statement := range []string{
		`INSERT INTO patients (id, mrn, active, gender, icd10_codes) VALUES ('p1', 'M1', TRUE, 'other', '["I10"]'), ('p2', 'M2', TRUE, 'other', '[]')`,
		`INSERT INTO consents (id, patient, type, method, granted_at) VALUES ('c1', 'p1', 'rpm', 'written', '2025-12-01T12:00:00.000000Z')`,
		`INSERT INTO time_entries (id, patient, user, category, source, started_at, ended_at, duration_seconds, notes) VALUES
			('000000000000001', 'p1', '` + nurse.Id + `', 'interactive', 'manual', '2026-01-10T15:00:00.000000Z', '2026-01-10T15:45:00.000000Z', 2700, 'x'),
			('000000000000002', 'p2', '` + nurse.Id + `', 'interactive', 'manual', '2026-01-10T15:00:00.000000Z', '2026-01-10T15:20:00.000000Z', 1200, 'x')`,
	} {
		if _, err := app.NonconcurrentDB().NewQuery(statement).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		q     reports.Query
		want  string
		total billing.Cents
	}{
		"all":        {reports.Query{}, "p1 99457 not_billed_yet 20 47.87, p1 99458 not_billed_yet 20 38.49, p2 99457 missing_consent 20 47.87", 2*4787 + 3849},
		"a code":     {reports.Query{CPTCode: "99458"}, "p1 99458 not_billed_yet 20 38.49", 3849},
		"a patient":  {reports.Query{PatientID: "p2"}, "p2 99457 missing_consent 20 47.87", 4787},
		"last month": {reports.Query{To: "2026-01-30"}, "", 0},
	} {
		r, err := engine(0).Build(app, reports.Unbilled, test.q, "admin", false, now)
		if err != nil {
			t.Fatal(err)
		}
		body := r.Body.(reports.UnbilledBody)
		var lines []string
		for _, x := range body.Results {
			lines = append(lines, fmt.Sprint(x.PatientID, " ", x.CPTCode, " ", x.Reason, " ", *x.Minutes, " ", x.EstimatedAmount))
		}
		if got := strings.Join(lines, ", "); got != test.want || body.Count != len(lines) || body.TotalEstimatedAmount != test.total {
			t.Errorf("%s: %d, %s: %s", name, body.Count, body.TotalEstimatedAmount, got)
		}
	}
}
