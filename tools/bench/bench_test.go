package main

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestSummarise(t *testing.T) {
	var taken []time.Duration
	for i := range 100 {
		taken = append(taken, time.Duration(100-i)*time.Millisecond)
	}
	got := summarise(taken, 10, 2*time.Second)
	if want := (figures{perSecond: 45, p50: 51 * time.Millisecond, p95: 96 * time.Millisecond, p99: 100 * time.Millisecond, max: 100 * time.Millisecond, failed: 10}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := summarise(nil, 0, time.Second); got != (figures{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

// The ratio is the median of the rounds' ratios, so that one disturbed round does not change it.
func TestCompare(t *testing.T) {
	round := func(ours, theirs float64) []figures { return []figures{{perSecond: ours}, {perSecond: theirs}} }
	r := compare("ingest", load{clients: 8}, [][]figures{round(300, 100), round(10, 100), round(400, 200)}, 1, "plain", byThroughput, aim{1, 3})
	if r.value != 2 || r.perSecond != 300 || r.other.perSecond != 100 || r.targetMet() != "floor" {
		t.Errorf("%+v is %s", r, r.targetMet())
	}
}

func TestTargetMet(t *testing.T) {
	for _, test := range []struct {
		row  row
		want string
	}{
		{row{value: 3, unit: "×", aim: aim{2, 3}}, "goal"},
		{row{value: 2.5, unit: "×", aim: aim{2, 3}}, "floor"},
		{row{value: 1.9, unit: "×", aim: aim{2, 3}}, "below"},
		{row{value: 40, unit: "ms", aim: aim{1000, 50}}, "goal"},
		{row{value: 400, unit: "ms", aim: aim{1000, 50}}, "floor"},
		{row{value: 4000, unit: "ms", aim: aim{1000, 50}}, "below"},
		{row{value: 96, unit: "%", aim: aim{80, 95}}, "goal"},
		{row{value: 5, unit: "B"}, ""},
	} {
		if got := test.row.targetMet(); got != test.want {
			t.Errorf("%v %s of %v: %q, want %q", test.row.value, test.row.unit, test.row.aim, got, test.want)
		}
	}
}

func TestReportFiles(t *testing.T) {
	tab := &table{rows: []row{
		{path: "ingest", clients: 64, figures: figures{perSecond: 1234, p50: 1500 * time.Microsecond}, against: "plain <FULL>", value: 2.5, unit: "×", aim: aim{2, 3}},
		{path: "device billing", value: 2.35, unit: "s", aim: aim{30, 3}, note: "10 entries, 10 patients"},
	}}
	dir := t.TempDir()
	if err := tab.writeCSV(filepath.Join(dir, "bench.csv"), "a machine"); err != nil {
		t.Fatal(err)
	}
	if err := tab.writeChart(filepath.Join(dir, "bench.svg")); err != nil {
		t.Fatal(err)
	}
	for name, words := range map[string][]string{
		"bench.csv": {"# a machine\n", "ingest,64,1.50,", ",2.50 ×,2.00 ×,3.00 ×,floor,", `"10 entries, 10 patients"`},
		"bench.svg": {"ingest, 64 : plain &lt;FULL&gt;", ">2.50</text>"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			if !strings.Contains(string(text), word) {
				t.Errorf("%s lacks %q:\n%s", name, word, text)
			}
		}
		if name == "bench.svg" && strings.Contains(string(text), "billing") {
			t.Error("the chart has a bar for a row without a ratio")
		}
	}
}

func TestBarLength(t *testing.T) {
	for ratio, want := range map[float64]float64{0.001: 0, 0.1: 0, 1: chartWidth / 5, 10_000: chartWidth, 1e6: chartWidth} {
		if got := barLength(ratio); math.Abs(got-want) > 1e-9 {
			t.Errorf("a ratio of %v reaches %v, want %v", ratio, got, want)
		}
	}
}

func TestWire(t *testing.T) {
	got := string(wire("POST", "host:1", "/path/", "tok", []byte(`{}`), "X-A", "1"))
	want := "POST /path/ HTTP/1.1\r\nHost: host:1\r\nAuthorization: Bearer tok\r\nX-A: 1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	if got != want {
		t.Errorf("%q", got)
	}
}

func TestPathsOf(t *testing.T) {
	names := func(only ...string) (found []string) {
		for _, p := range pathsOf(only) {
			found = append(found, p.name)
		}
		return found
	}
	if got := names(); len(got) != len(paths) {
		t.Errorf("all paths: %v", got)
	}
	if got := strings.Join(names("in", "live"), " "); got != "ingest live" {
		t.Errorf("some paths: %s", got)
	}
}

// Each request of a target is unique across loads, so that acknowledgements can be counted.
func TestRequestsUnique(t *testing.T) {
	s := &server{addr: "host:1", people: people{patients: []string{"a", "b"}, devices: []string{"d", "e"}}}
	to, seen := readings(s, time.Unix(0, 0)), map[string]bool{}
	for range 100 {
		seen[string(to.next(to.sent.Add(1)))] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d requests of 100 differ", len(seen))
	}
}

// Seeded data looks as if the service had stored it: totals match the rows, no part of the schema is missing, and names are
// sealed.
func TestSeed(t *testing.T) {
	app := vigiltest.NewApp(t)
	schema := func() (parts []string) {
		if err := app.DB().NewQuery("SELECT type || ' ' || name FROM sqlite_master ORDER BY 1").Column(&parts); err != nil {
			t.Fatal(err)
		}
		return parts
	}
	before := schema()
	s := &seeder{loader: loader{t.Context(), app}, now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	for _, step := range []func() error{
		func() error { return s.seedPatients(30) },
		func() error { return s.seedReadings(1000) },
		func() error { return s.seedPending(40) },
		func() error { return s.seedBillable(30) },
		func() error { return s.seedEntries(500) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if after := schema(); !slices.Equal(before, after) {
		t.Errorf("the schema is %v, was %v", after, before)
	}
	for query, want := range map[string]int{
		"SELECT COUNT(*) FROM observations":      1040,
		"SELECT SUM(readings) FROM daily_counts": 1000,
		"SELECT COUNT(*) FROM observations WHERE substr(measured_at, 1, 10) NOT IN (SELECT day FROM daily_counts) AND source = 'gateway' AND fhir_status = 'transmitted'": 0,
		"SELECT COUNT(*) FROM transmissions":               40,
		"SELECT SUM(patients) FROM triage_totals":          30,
		"SELECT COUNT(DISTINCT patient) FROM observations": 30,
		"SELECT COUNT(*) FROM reading_days":                600,
		"SELECT SUM(claims) FROM billing_months":           500,
		"SELECT COUNT(DISTINCT service_date) FROM billing_entries WHERE service_date BETWEEN '2024-04-03' AND '2026-03-03'": 500,
	} {
		var got int
		if err := app.DB().NewQuery(query).Row(&got); err != nil || got != want {
			t.Errorf("%s is %d, not %d: %v", query, got, want, err)
		}
	}
	var sealed string
	if err := app.DB().NewQuery("SELECT first_name FROM patients WHERE mrn = 'MRN-00000016'").Row(&sealed); err != nil {
		t.Fatal(err)
	}
	if name, err := collections.Open(sealed, "patients.first_name", s.patients[16]); err != nil || name != givenNames[0] {
		t.Errorf("the first name opens as %q: %v", name, err)
	}
}

// Interrupting the command stops seeding within milliseconds, even with millions of rows left.
func TestSeedCanceled(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s := &seeder{loader: loader{ctx, vigiltest.NewApp(t)}, now: time.Now()}
	if err := s.seedPatients(10); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, stop)
	if err := s.seedReadings(100_000_000); !errors.Is(err, context.Canceled) && (err == nil || !strings.Contains(err.Error(), "interrupt")) {
		t.Errorf("seedReadings returned %v, want canceled", err)
	}
}
