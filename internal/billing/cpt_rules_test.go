package billing_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestCents(t *testing.T) {
	for dollars, want := range map[float64]billing.Cents{0: 0, 43.02: 4302, 0.1: 10, 38.49: 3849, 1e6: 1e8, 1.15: 115, 999999.99: 99999999} {
		if got, ok := billing.CentsOf(dollars); !ok || got != want {
			t.Errorf("%v is %d (%t), want %d", dollars, got, ok, want)
		}
	}
	for _, wrong := range []float64{-0.01, -1, 0.001, 10.005, 1e6 + 1, math.NaN(), math.Inf(1)} {
		if got, ok := billing.CentsOf(wrong); ok {
			t.Errorf("%v is taken as %d", wrong, got)
		}
	}
	if text, err := json.Marshal([]billing.Cents{4302, 5, -150}); err != nil || string(text) != "[43.02,0.05,-1.50]" {
		t.Errorf("%s %v", text, err)
	}
}

func TestCodesOf2026(t *testing.T) {
	engine := billing.New(billing.Settings{Zone: newYork, MaxUnits99458: 3, Enable2026Codes: true})
	for _, test := range []struct {
		day     string
		minutes int
		over    bool
		want    string
	}{
		{"2026-03-10", 9, true, ""},
		{"2026-03-10", 10, true, "99470x1"},
		{"2026-03-10", 10, false, ""},
		{"2026-03-10", 19, true, "99470x1"},
		{"2026-03-10", 20, false, "99457x1"},
		{"2025-12-10", 15, true, ""},
		{"2026-03-10", 39, true, "99457x1"},
		{"2026-03-10", 40, true, "99457x1 99458x1"},
		{"2026-03-10", 240, true, "99457x1 99458x3"},
	} {
		at, err := time.ParseInLocation(time.DateOnly, test.day, newYork)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range engine.PlanMonth([]billing.LoggedTime{{ID: "1", StartedAt: at, Seconds: test.minutes*60 + 59, HasNote: true}}, test.over) {
			got = append(got, fmt.Sprintf("%sx%d", b.Code, b.Units))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
	if _, ok := engine.Rule(billing.ShortSupply, "2025-12-31"); ok {
		t.Error("99445 is in force before 2026")
	}
	if _, ok := newEngine().Rule(billing.ShortSupply, "2026-01-01"); ok {
		t.Error("99445 is in force though it is switched off")
	}
}

func TestImportICD10(t *testing.T) {
	app := vigiltest.NewApp(t)
	line := func(code string, valid int, text string) string {
		return fmt.Sprintf("%05d %-7s %d %-60s %s\n", 1, code, valid, text[:min(60, len(text))], text)
	}
	file := line("E11", 0, "Type 2 diabetes mellitus") + line("E119", 1, "Type 2 diabetes mellitus without complications, as CMS has it") +
		line("C4A0", 1, "Merkel cell carcinoma of lip") + line("U071", 1, "COVID-19") + "\r\n"
	for range 2 {
		if stored, err := billing.ImportICD10(app, strings.NewReader(file), 2027, func(int) {}); err != nil || stored != 2 {
			t.Fatalf("%d codes are stored: %v", stored, err)
		}
	}
	var text, block string
	if err := app.DB().NewQuery("SELECT description, category FROM icd10_codes WHERE code = 'E11.9'").Row(&text, &block); err != nil ||
		!strings.HasSuffix(text, "as CMS has it") || block != "Diabetes mellitus" {
		t.Errorf("%q %q %v", text, block, err)
	}
	for _, wrong := range []string{"", "nonsense\n", strings.Replace(line("E119", 1, "Text"), " 1 ", " 7 ", 1)} {
		if _, err := billing.ImportICD10(app, strings.NewReader(wrong), 2027, func(int) {}); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// A rate written directly to the database is validated like one written through the API.
func TestCheckRate(t *testing.T) {
	for _, test := range []struct {
		code  string
		cents float64
		day   string
		right bool
	}{
		{"99457", 4787, "2026-01-01", true},
		{"99457", 0, "2026-01-01", true},
		{"99490", 1, "2026-01-01", true}, // listed, but not billed
		{"99445", 1e8, "2028-02-29", true},
		{"99456", 4787, "2026-01-01", false},
		{"", 4787, "2026-01-01", false},
		{"99457", 1e8 + 1, "2026-01-01", false},
		{"99457", -1, "2026-01-01", false},
		{"99457", 10.5, "2026-01-01", false},
		{"99457", math.NaN(), "2026-01-01", false},
		{"99457", 4787, "2026-02-29", false},
		{"99457", 4787, "01/02/2026", false},
		{"99457", 4787, "", false},
	} {
		if said := billing.CheckRate(test.code, test.cents, test.day); (said == "") != test.right {
			t.Errorf("%+v: %q", test, said)
		}
	}
}

// The catalog always lists the eight codes; a code is billable if it has a rule, at the rule's rate.
func TestCatalogue(t *testing.T) {
	for _, modern := range []bool{false, true} {
		engine := billing.New(billing.Settings{Enable2026Codes: modern})
		if engine.Zone != time.UTC {
			t.Errorf("without a zone it is %v", engine.Zone)
		}
		billable, listed := map[string]bool{}, engine.Catalog()
		for _, code := range engine.Codes() {
			if billable[code] {
				t.Errorf("%s twice", code)
			}
			billable[code] = true
		}
		for _, row := range listed {
			rule, ok := engine.Rule(row.Code, "2026-06-01")
			if row.Billable != ok || row.Billable != billable[row.Code] || ok && rule.Rate != row.DefaultRate || row.Description == "" {
				t.Errorf("%s: billable %v, rule %v, rate %s", row.Code, row.Billable, ok, row.DefaultRate)
			}
		}
		if len(listed) != 8 || len(billable) != map[bool]int{false: 5, true: 7}[modern] {
			t.Errorf("%d listed, %d billable", len(listed), len(billable))
		}
	}
}

func TestDays(t *testing.T) {
	for _, test := range []struct {
		day  string
		n    int
		want string
	}{{"2026-02-28", 1, "2026-03-01"}, {"2028-02-28", 1, "2028-02-29"}, {"2026-01-01", -1, "2025-12-31"}, {"2026-03-07", 2, "2026-03-09"}, {"2026-01-01", 0, "2026-01-01"}} {
		if got := billing.AddDays(test.day, test.n); got != test.want || billing.DaysBetween(test.day, got) != test.n {
			t.Errorf("%s and %d days is %s", test.day, test.n, got)
		}
	}
	if !billing.ParseDay("2026-02-30").IsZero() {
		t.Error("the thirtieth of February")
	}
	e := newEngine()
	if from, to := e.TimeRange(billing.Span{Start: "2026-03-08", End: "2026-03-08"}); to.Sub(from) != 23*time.Hour || e.Day(from) != "2026-03-08" || e.Day(to.Add(-1)) != "2026-03-08" {
		t.Errorf("the day on which clocks are put forward is from %v to %v", from, to)
	}
}
