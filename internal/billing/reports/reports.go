// Package reports builds the practice's billing reports: twelve reports, two statistics, and the self-audit, which looks for patterns in the
// practice's billing that an auditor would question. Reports read the stored totals, or an index that contains the answer. Amounts stay in whole
// cents; shares are rounded once, from whole numbers. A self-audit pattern is a question, not a verdict, and changes nothing.
//
// The package does not handle patients' names (routes add them), file formats or requests. The rules are written in docs/decisions/billing.md
// and docs/decisions/claims.md.
package reports

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/billing"
)

// Name is a report's name in the contract.
type Name string

// The reports. Source: specification, "Thirteen report endpoints"; the thirteenth exports any of these to a file.
const (
	ExecutiveDashboard   Name = "executive-dashboard"
	Revenue              Name = "revenue"
	ClaimsStatus         Name = "claims-status"
	Unbilled             Name = "unbilled"
	Aging                Name = "aging"
	PayerPerformance     Name = "payer-performance"
	PatientSummary       Name = "patient-summary"
	CPTUtilization       Name = "cpt-utilization"
	MonthlyTrend         Name = "monthly-trend"
	ProviderProductivity Name = "provider-productivity"
	TasksSummary         Name = "tasks-summary"
	QuickStats           Name = "quick-stats"
)

// defaultSpan is the span of a report without dates.
type defaultSpan int

const (
	thirtyDays   defaultSpan = iota // through today
	twelveMonths                    // this one and the eleven before
	thisMonth
	allTime
)

// definitions are the reports. Source: docs/decisions/billing.md, "Report parameters (all 13)" and "Report shapes".
var definitions = map[Name]struct {
	span   defaultSpan
	cached bool
	title  string
	make   func(*builder) (any, error)
}{
	ExecutiveDashboard:   {twelveMonths, true, "Executive dashboard", (*builder).executive},
	Revenue:              {thirtyDays, false, "Revenue", (*builder).revenue},
	ClaimsStatus:         {thirtyDays, false, "Claims by status", (*builder).claimsStatus},
	Unbilled:             {allTime, false, "Unbilled activity", (*builder).unbilled},
	Aging:                {allTime, false, "Aging of open claims", (*builder).aging},
	PayerPerformance:     {thirtyDays, true, "Payer performance", (*builder).payerPerformance},
	PatientSummary:       {allTime, false, "Patient summary", (*builder).patientSummary},
	CPTUtilization:       {thirtyDays, false, "Use of CPT codes", (*builder).cptUtilization},
	MonthlyTrend:         {twelveMonths, true, "Monthly trend", (*builder).monthlyTrend},
	ProviderProductivity: {thirtyDays, false, "Provider productivity", (*builder).productivity},
	TasksSummary:         {allTime, false, "Tasks", (*builder).tasks},
	QuickStats:           {thisMonth, false, "Quick stats", (*builder).quickStats},
}

// Names returns the reports in alphabetical order.
func Names() []Name { return slices.Sorted(maps.Keys(definitions)) }

// Title returns the title of the report.
func (n Name) Title() string { return definitions[n].title }

// Report is a finished report. It is shared by all callers and must not be changed.
type Report struct {
	Name        Name
	From, To    string
	GeneratedAt time.Time
	Cached      bool
	Body        any // one of the exported structs of this package
}

// Engine builds reports.
type Engine struct {
	billing *billing.Engine
	cache   cache
}

// New returns an engine that caches the three expensive reports; 0 disables the cache.
func New(b *billing.Engine, keep time.Duration) *Engine {
	return &Engine{billing: b, cache: cache{ttl: keep}}
}

// Build builds a report, or returns it from the cache unless refresh is set. Roles do not share cached reports.
func (e *Engine) Build(app core.App, name Name, q Query, role string, refresh bool, now time.Time) (Report, error) {
	kind, found := definitions[name]
	if !found {
		return Report{}, fmt.Errorf("no report %q", name)
	}
	q = e.defaults(kind.span, q, now)
	key := string(name) + " " + role + " " + q.key()
	if kind.cached && !refresh {
		if found, ok := e.cache.find(key, now); ok {
			return found, nil
		}
	}
	body, err := kind.make(&builder{app: app, engine: e.billing, q: q, now: now, today: e.billing.Day(now)})
	if err != nil {
		return Report{}, fmt.Errorf("report %s: %w", name, err)
	}
	report := Report{Name: name, From: q.From, To: q.To, GeneratedAt: now, Body: body}
	if kind.cached {
		e.cache.put(key, report, now)
	}
	return report, nil
}

// defaults sets missing dates. The default end is today; the default start is the report's usual span before the end.
func (e *Engine) defaults(s defaultSpan, q Query, now time.Time) Query {
	if s == allTime {
		return q
	}
	if q.To == "" {
		q.To = e.billing.Day(now)
	}
	if q.From == "" {
		month := q.To[:len("2006-01")] + "-01"
		switch s {
		case thirtyDays:
			q.From = billing.AddDays(q.To, -29)
		case twelveMonths:
			q.From = billing.ParseDay(month).AddDate(0, -11, 0).Format(time.DateOnly)
		default:
			q.From = month
		}
	}
	return q
}

// builder builds one report.
type builder struct {
	app    core.App
	engine *billing.Engine
	q      Query
	now    time.Time
	today  string // in the practice's zone
}

// totals returns the totals of the query.
func (m *builder) totals(by ...billing.Dimension) ([]billing.Totals, error) {
	return m.totalsBetween(m.q.From, m.q.To, by...)
}

func (m *builder) totalsBetween(from, to string, by ...billing.Dimension) ([]billing.Totals, error) {
	return billing.LoadTotals(m.app, m.filter(from, to), by...)
}

func (m *builder) filter(from, to string) billing.TotalsFilter {
	return billing.TotalsFilter{From: from, To: to, CPTCode: m.q.CPTCode, Patient: m.q.PatientID, Payer: m.q.Payer, Provider: m.q.Provider}
}

// addUp adds totals up.
func addUp(sums []billing.Totals) (all billing.Totals) {
	for _, s := range sums {
		all.Claims += s.Claims
		all.Units += s.Units
		all.Amount += s.Amount
		all.Collected += s.Collected
		all.SubmittedClaims += s.SubmittedClaims
		all.SubmittedAmount += s.SubmittedAmount
		all.DeniedClaims += s.DeniedClaims
		all.PaidDatedClaims += s.PaidDatedClaims
		all.DaysToPayment += s.DaysToPayment
		all.Billed += s.Billed
		all.Adjusted += s.Adjusted
		all.PatientShare += s.PatientShare
		all.Refunded += s.Refunded
	}
	return all
}

// Query selects the data of a report. From and To are practice days, both included; "" is open. nil and "" omit a criterion; a pointer to ""
// means self-pay, or no provider. Ids are record ids.
type Query struct {
	From, To        string
	Payer, Provider *string
	CPTCode         string
	PatientID       string
	Offset, Limit   int // of patient-summary; 0 is no limit
}

// key returns the query as a cache key.
func (q Query) key() string {
	text := func(id *string) string {
		if id == nil {
			return "any"
		}
		return *id
	}
	return fmt.Sprintf("%q", []string{q.From, q.To, text(q.Payer), text(q.Provider), q.CPTCode, q.PatientID})
}

// where returns the query as a condition on billing_entries, after other conditions.
func (m *builder) where(conditions ...string) (string, dbx.Params) {
	params := dbx.Params{}
	for _, f := range []struct {
		column, compare string
		value           *string
	}{
		{"service_date", ">=", optional(m.q.From)},
		{"service_date", "<=", optional(m.q.To)},
		{"cpt_code", "=", optional(m.q.CPTCode)},
		{"patient", "=", optional(m.q.PatientID)},
		{"payer", "=", m.q.Payer},
		{"rendering_provider", "=", m.q.Provider},
	} {
		if f.value != nil {
			name := fmt.Sprint("q", len(params))
			conditions = append(conditions, f.column+" "+f.compare+" {:"+name+"}")
			params[name] = *f.value
		}
	}
	return strings.Join(conditions, " AND "), params
}

// indexedBy makes a query use a covering index; SQLite, which counts rows and not their cost, would choose a shorter one and read every entry. A
// single patient has few entries.
func (m *builder) indexedBy(index string) string {
	if m.q.PatientID != "" {
		return ""
	}
	return " INDEXED BY idx_billing_entries_" + index
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// ratio returns n ÷ d rounded half away from zero to a number of decimals, in integer arithmetic; 0 if d is not positive.
func ratio(n, d int64, decimals int) float64 {
	if d <= 0 {
		return 0
	}
	if n < 0 {
		return -ratio(-n, d, decimals)
	}
	scale := int64(1)
	for range decimals {
		scale *= 10
	}
	return float64((2*n*scale+d)/(2*d)) / float64(scale)
}

// fraction returns n ÷ d with four decimals.
func fraction[T, U ~int | ~int64](n T, d U) float64 { return ratio(int64(n), int64(d), 4) }

// relativeChange returns the relative change from before to now, times the factor; nil if before is not positive.
func relativeChange(before, now billing.Cents, factor int64, decimals int) *float64 {
	if before <= 0 {
		return nil
	}
	return new(ratio(int64(now-before)*factor, int64(before), decimals))
}

// averageOf returns an amount divided by n, rounded to the cent.
func averageOf(amount billing.Cents, n int) billing.Cents {
	if n <= 0 {
		return 0
	}
	return (2*amount + billing.Cents(n)) / (2 * billing.Cents(n))
}
