package reports_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var newYork = func() *time.Location {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	return zone
}()

func engine(keep time.Duration) *reports.Engine {
	return reports.New(billing.New(billing.Settings{Zone: newYork, MaxUnits99458: 3, RequireConsent: true}), keep)
}

// oracles are the expected reports, and what each covers without dates.
var oracles = map[reports.Name]struct {
	says   func(practice, request) object
	covers string
}{
	reports.ExecutiveDashboard: {practice.oracleExecutive, "year"},
	reports.Revenue:            {practice.oracleRevenue, "month"},
	reports.ClaimsStatus:       {practice.oracleStatus, "month"},
	reports.Aging:              {practice.oracleAging, ""},
	reports.PayerPerformance:   {practice.oraclePayers, "month"},
	reports.PatientSummary:     {practice.oraclePatients, ""},
	reports.CPTUtilization:     {practice.oracleCodes, "month"},
	reports.MonthlyTrend: {func(p practice, q request) object {
		return object{"results": p.monthRows(q, "growth_rate", 1, 4)}
	}, "year"},
	reports.ProviderProductivity: {practice.oracleProviders, "month"},
	reports.TasksSummary:         {practice.oracleTasks, ""},
	reports.QuickStats: {func(p practice, q request) object {
		f := sumUp(p.about(q))
		return object{"total_revenue": money(f.cents), "claims_count": f.claims, "collection_rate": rounded(f.paid, f.sentCents, 4), "as_of": p.now.Format(time.DateOnly)}
	}, "calendar month"},
}

// dates returns the days of a report requested without dates.
func dates(covers string, q request, now time.Time) request {
	if covers == "" {
		return q
	}
	if q.to == "" {
		q.to = now.In(newYork).Format(time.DateOnly)
	}
	if q.from == "" {
		year, _ := strconv.Atoi(q.to[:4])
		month, _ := strconv.Atoi(q.to[5:7])
		switch covers {
		case "month":
			q.from = moved(q.to, -29)
		case "year":
			q.from = time.Date(year, time.Month(month-11), 1, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		default:
			q.from = q.to[:8] + "01"
		}
	}
	return q
}

// plain converts a value to JSON types.
func plain(t *testing.T, value any) (out any) {
	t.Helper()
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func question(r *rand.Rand, p practice) request {
	q := request{payer: "any", provider: "any"}
	day := func() string { return p.begin.AddDate(0, 0, r.IntN(450)-10).Format(time.DateOnly) }
	switch r.IntN(4) {
	case 0:
	case 1: // whole months
		month := p.begin.AddDate(0, r.IntN(10), 0).Format("2006-01")
		q.from = month + "-01"
		q.to = moved(moved(q.from, 31+r.IntN(90))[:8]+"01", -1)
	case 2:
		q.to = day()
	default:
		if q.from, q.to = day(), day(); q.from > q.to {
			q.from, q.to = q.to, q.from
		}
	}
	if r.IntN(3) == 0 {
		q.payer = []string{"000000000000001", "000000000000002", "000000000000009"}[r.IntN(3)]
	}
	if r.IntN(3) == 0 {
		for id := range p.providers {
			q.provider = id
		}
	}
	if r.IntN(3) == 0 {
		q.code = codes[r.IntN(len(codes))]
	}
	if r.IntN(4) == 0 {
		q.patient = p.people[r.IntN(len(p.people))].id
	}
	return q
}

func id(text string) *string {
	if text == "any" {
		return nil
	}
	return &text
}

// Every figure of every report matches the oracle, for random practices over 14 months. VIGIL_ORACLE_CASES sets a larger number of cases.
func TestOracle(t *testing.T) {
	cases := 25
	if n, err := strconv.Atoi(os.Getenv("VIGIL_ORACLE_CASES")); err == nil {
		cases = n
	}
	app := vigiltest.NewApp(t)
	names, e := staff(t, app), engine(0)
	for seed := range uint64(cases) {
		p := invent(seed, names)
		p.plant(t, app)
		r := rand.New(rand.NewPCG(seed, 13))
		for name, oracle := range oracles {
			for range 3 {
				q := question(r, p)
				report, err := e.Build(app, name, reports.Query{
					From: q.from, To: q.to, Payer: id(q.payer), Provider: id(q.provider), CPTCode: q.code, PatientID: q.patient,
				}, "admin", false, p.now)
				if err != nil {
					t.Fatal(err)
				}
				q = dates(oracle.covers, q, p.now)
				if report.From != q.from || report.To != q.to {
					t.Fatalf("%s covers %s to %s, not %v", name, report.From, report.To, q)
				}
				agree(t, seed, string(name), q, oracle.says(p, q), report.Body)
			}
		}
		checkStatistics(t, app, e, seed, r, p)
		checkOpen(t, app, e, r, p)
	}
	if months, wrong, err := billing.RecountTotals(t.Context(), app); err != nil || wrong != 0 {
		t.Errorf("recounting %d months finds %d wrong: %v", months, wrong, err)
	}
}

// checkOpen compares what is open by age with the revenue report of the same question.
func checkOpen(t *testing.T, app core.App, e *reports.Engine, r *rand.Rand, p practice) {
	t.Helper()
	q := dates("month", question(r, p), p.now)
	ask := reports.Query{From: q.from, To: q.to, Payer: id(q.payer), Provider: id(q.provider), CPTCode: q.code, PatientID: q.patient}
	aging, err := e.Build(app, reports.Aging, ask, "admin", false, p.now)
	revenue, err2 := e.Build(app, reports.Revenue, ask, "admin", false, p.now)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	total, sum := aging.Body.(reports.AgingBody).TotalOpen, billing.Cents(0)
	for _, b := range aging.Body.(reports.AgingBody).Buckets {
		sum += b.Open
	}
	if sent := revenue.Body.(reports.RevenueBody).OpenSubmitted; total != sent || total != sum {
		t.Fatalf("%+v: %v by age, %v by bucket, %v in the revenue report", q, total, sum, sent)
	}
}

func agree(t *testing.T, seed uint64, what string, q request, want, got any) {
	t.Helper()
	if want, got := plain(t, want), plain(t, got); !reflect.DeepEqual(want, got) {
		t.Fatalf("case %d, %s, %+v:\noracle: %v\nreport: %v", seed, what, q, want, got)
	}
}

func checkStatistics(t *testing.T, app core.App, e *reports.Engine, seed uint64, r *rand.Rand, p practice) {
	t.Helper()
	month, _ := billing.MonthSpan(p.begin.AddDate(0, r.IntN(14), 0).Format("2006-01"))
	statistics, err := e.MonthStatistics(app, month)
	if err != nil {
		t.Fatal(err)
	}
	agree(t, seed, "stats", request{from: month.Start}, p.oracleStats(month.Start[:7]), statistics)
	for _, group := range []string{"", "day", "week", "month"} {
		q := dates("month", question(r, p), p.now)
		q = request{from: q.from, to: q.to, payer: "any", provider: "any"}
		breakdown, err := e.Breakdown(app, q.from, q.to, group)
		if err != nil {
			t.Fatal(err)
		}
		if group == "" {
			group = groupOf(q.from, q.to)
		}
		agree(t, seed, "breakdown by "+group, q, p.oracleBreakdown(q, group), breakdown)
	}
}
