package reports_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/billing/reports"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// facts are the facts of March 2026, in which most of America changes to daylight saving time and New Zealand does not.
func facts(at *time.Location) reports.AuditFacts {
	month, _ := billing.MonthSpan("2026-03")
	return reports.AuditFacts{
		Month: month, Zone: at, Lines: map[string][]reports.AuditedLine{}, FirstBilled: map[string]string{}, FirstFact: map[string]string{}, FirstVisit: map[string]string{}, Days: map[string]reports.DataDayCounts{},
	}
}

// want checks the finding of a pattern; count 0 expects none.
func want(t testing.TB, f reports.AuditFacts, pattern reports.Pattern, count int, entries string) {
	t.Helper()
	got, behind := 0, "[]"
	for _, found := range reports.FindPatterns(f) {
		if found.Pattern == pattern {
			got, behind = found.Count, fmt.Sprint(found.EntryIDs)
		}
	}
	if got != count || behind != entries {
		t.Errorf("%s is found %d times in %s, want %d in %s", pattern, got, behind, count, entries)
	}
}

func line(id, code, service, start, end string) reports.AuditedLine {
	return reports.AuditedLine{ID: id, Patient: "p", Code: code, Service: service, Start: start, End: end}
}

func TestNoEstablishedVisit(t *testing.T) {
	for visit, count := range map[string]int{"2025-12-07": 0, "2025-12-08": 1, "2026-01-04": 1, "2026-03-01": 1, "": 1} {
		f := facts(time.UTC)
		f.Lines["p"] = []reports.AuditedLine{line("a", "99454", "2026-01-05", "2025-12-07", "2026-01-05"), line("b", "99457", "2026-03-31", "2026-03-01", "2026-03-31")}
		f.FirstBilled["p"], f.FirstFact["p"], f.FirstVisit["p"] = "2026-01-05", "2025-12-08", visit
		behind := "[]"
		if count > 0 {
			behind = "[b]" // the line of the month
		}
		want(t, f, reports.NoEstablishedVisit, count, behind)
	}
}

func TestSupplyWithoutManagement(t *testing.T) {
	first, second, third := line("a", "99454", "2026-01-29", "2025-12-31", "2026-01-29"), line("b", "99445", "2026-02-28", "2026-01-30", "2026-02-28"),
		line("c", "99454", "2026-03-30", "2026-03-01", "2026-03-30")
	for name, c := range map[string]struct {
		lines []reports.AuditedLine
		count int
	}{
		"two":                               {[]reports.AuditedLine{second, third}, 0},
		"three":                             {[]reports.AuditedLine{third, first, second}, 1},
		"management in the first":           {[]reports.AuditedLine{first, second, third, line("m", "99457", "2026-01-29", "2026-01-01", "2026-01-31")}, 0},
		"management in the second":          {[]reports.AuditedLine{first, second, third, line("m", "99470", "2026-02-01", "2026-02-01", "2026-02-28")}, 0},
		"interpretation in the third":       {[]reports.AuditedLine{first, second, third, line("m", "99091", "2026-03-01", "2026-03-01", "2026-03-31")}, 0},
		"after the period, in its month":    {[]reports.AuditedLine{first, second, third, line("m", "99457", "2026-03-31", "2026-03-01", "2026-03-31")}, 0},
		"before all of them":                {[]reports.AuditedLine{first, second, third, line("m", "99457", "2025-12-30", "2025-12-01", "2025-12-31")}, 1},
		"set-up is none":                    {[]reports.AuditedLine{first, second, third, line("m", "99453", "2026-02-01", "2026-02-01", "2026-02-01")}, 1},
		"30 days between are no row":        {[]reports.AuditedLine{line("a", "99454", "2025-12-30", "2025-12-01", "2025-12-30"), line("b", "99454", "2026-02-28", "2026-01-30", "2026-02-28"), third}, 0},
		"29 days between are":               {[]reports.AuditedLine{line("a", "99454", "2025-12-31", "2025-12-02", "2025-12-31"), line("b", "99454", "2026-02-28", "2026-01-30", "2026-02-28"), third}, 1},
		"two of the same days are one":      {[]reports.AuditedLine{second, line("a", "99454", "2026-02-27", "2026-01-29", "2026-02-27"), third}, 0},
		"the third is not billed this time": {[]reports.AuditedLine{first, second, line("c", "99454", "2026-04-01", "2026-03-03", "2026-04-01")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(time.UTC)
			f.Lines["p"] = c.lines
			behind := "[]"
			if c.count > 0 {
				behind = "[a b c]"
			}
			want(t, f, reports.SupplyWithoutManagement, c.count, behind)
		})
	}
}

func TestEnrolmentSpike(t *testing.T) {
	for _, c := range []struct{ enrolled, before, older, count int }{
		{9, 0, 0, 0}, {10, 0, 0, 10}, {10, 10, 0, 10}, {10, 11, 0, 0}, {33, 33, 90, 33}, {32, 33, 0, 0},
	} {
		f, behind := facts(time.UTC), []string{}
		for i := range c.enrolled {
			id := fmt.Sprintf("n%02d", i)
			f.FirstBilled[id], f.Lines[id] = "2026-03-01", []reports.AuditedLine{line(id, "99453", "2026-03-01", "", "")}
			behind = append(behind, id)
		}
		for i := range c.before {
			f.FirstBilled[fmt.Sprint("b", i)] = []string{"2025-12-01", "2026-01-31", "2026-02-28"}[i%3]
		}
		for i := range c.older {
			f.FirstBilled[fmt.Sprint("o", i)] = "2025-11-30"
		}
		if c.count == 0 {
			behind = nil
		}
		want(t, f, reports.EnrollmentSpike, c.count, fmt.Sprint(behind))
	}
}

func TestSeveralDevices(t *testing.T) {
	a := line("a", "99454", "2026-03-10", "2026-02-09", "2026-03-10")
	for name, c := range map[string]struct {
		b     reports.AuditedLine
		count int
	}{
		"the next period":          {line("b", "99454", "2026-04-09", "2026-03-11", "2026-04-09"), 0},
		"from its last day":        {line("b", "99454", "2026-04-08", "2026-03-10", "2026-04-08"), 1},
		"the short code":           {line("b", "99445", "2026-03-10", "2026-02-09", "2026-03-10"), 1},
		"until its first day":      {line("b", "99445", "2026-02-09", "2026-01-11", "2026-02-09"), 1},
		"the set-up of the device": {line("b", "99453", "2026-02-20", "2026-02-09", "2026-03-10"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(time.UTC)
			f.Lines["p"] = []reports.AuditedLine{a, c.b}
			behind := "[]"
			if c.count > 0 {
				behind = "[a b]"
			}
			want(t, f, reports.SeveralDevices, c.count, behind)
		})
	}
}

func TestTypedDays(t *testing.T) {
	for days, count := range map[reports.DataDayCounts]int{{16, 8}: 0, {17, 8}: 0, {17, 9}: 1, {1, 1}: 1, {1, 0}: 0} {
		f := facts(time.UTC)
		f.Days["p"] = days
		want(t, f, reports.ManualDays, count, "[]")
	}
}

// A user's day has at most 960 minutes, also when the clocks change, and time across midnight is divided.
func TestImpossibleDays(t *testing.T) {
	for _, name := range []string{"UTC", "America/New_York", "Pacific/Auckland"} {
		at := zone(t, name)
		stretch := func(day, hour, minutes int) reports.LoggedTime {
			from := time.Date(2026, 3, day, hour, 0, 0, 0, at)
			length := time.Duration(minutes) * time.Minute
			return reports.LoggedTime{ID: int64(day*100 + hour), Person: "u", Entry: fmt.Sprintf("%02d-%02d", day, hour), From: from, To: from.Add(length), Length: length, Recorded: from}
		}
		for _, day := range []int{1, 8, 31} {
			f := facts(at)
			f.Time = []reports.LoggedTime{stretch(day, 4, 480), stretch(day, 12, 480)}
			want(t, f, reports.ImpossibleDay, 0, "[]")
			f.Time = append(f.Time, stretch(day, 20, 1))
			want(t, f, reports.ImpossibleDay, 1, fmt.Sprintf("[%02d-04 %02d-12 %02d-20]", day, day, day))
			f.Time[2].Person = "v"
			want(t, f, reports.ImpossibleDay, 0, "[]")
		}
		over := facts(at)
		over.Time = []reports.LoggedTime{stretch(0, 22, 180), stretch(1, 4, 480), stretch(1, 12, 420)} // one hour of the first belongs to March
		want(t, over, reports.ImpossibleDay, 0, "[]")
		over.Time[0].Length += time.Minute
		want(t, over, reports.ImpossibleDay, 1, "[00-22 01-04 01-12]")
	}
}

func TestCompetingService(t *testing.T) {
	for span, behind := range map[billing.Span]string{
		{Start: "2026-01-01"}: "[a b]", {Start: "2026-01-01", End: "2026-03-02"}: "[a b]", {Start: "2026-03-31"}: "[b]", {Start: "2026-02-11", End: "2026-02-28"}: "[a]",
		{Start: "2026-01-01", End: "2026-02-09"}: "[]", {Start: "2026-04-01"}: "[]",
	} {
		f := facts(time.UTC)
		f.Lines["p"] = []reports.AuditedLine{line("a", "99454", "2026-03-11", "2026-02-10", "2026-03-11"), line("b", "99457", "2026-03-20", "2026-03-01", "2026-03-31")}
		f.Lines["q"] = []reports.AuditedLine{line("c", "99457", "2026-03-20", "2026-03-01", "2026-03-31")}
		f.CompetingServices = map[string][]billing.Span{"p": {span}}
		want(t, f, reports.CompetingService, min(1, len(behind)-2), behind)
	}
}
