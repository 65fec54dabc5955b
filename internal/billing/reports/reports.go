// Package reports knows what the practice asks about its money: twelve reports and two statistics, each a question to the sums that are kept with
// the entries, and, where those do not know, to an index that holds the answer. Money stays whole cents until it is shown; shares are rounded
// once, from whole numbers.
//
// It refuses to know names of patients (the door opens those it shows), file formats, and requests.
package reports

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/billing"
)

// Name is a report's name in the contract.
type Name string

// The reports. Source: specification, "Thirteen report endpoints"; the thirteenth writes any of these to a file.
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

// defaultSpan is what a report covers when no dates are given.
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

// Names are the reports in alphabetical order.
func Names() []Name { return slices.Sorted(maps.Keys(definitions)) }

// Title is how a paper names the report.
func (n Name) Title() string { return definitions[n].title }

// Report is a report as it was made. It is shared by all who are shown it: nobody changes it.
type Report struct {
	Name        Name
	From, To    string
	GeneratedAt time.Time
	Cached      bool
	Body        any // one of the exported structs of this package
}

// Engine makes reports.
type Engine struct {
	billing *billing.Engine
	cache   cache
}

// New returns an engine that keeps the three expensive reports for a while; 0 keeps none.
func New(b *billing.Engine, keep time.Duration) *Engine {
	return &Engine{billing: b, cache: cache{ttl: keep}}
}

// Build makes a report, or finds it in the cache unless it is to be made anew. Callers of different roles share nothing.
func (e *Engine) Build(app core.App, name Name, q Query, role string, anew bool, now time.Time) (Report, error) {
	kind, known := definitions[name]
	if !known {
		return Report{}, fmt.Errorf("no report %q", name)
	}
	q = e.defaults(kind.span, q, now)
	key := string(name) + " " + role + " " + q.key()
	if kind.cached && !anew {
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

// defaults fill in the dates. An end that is left out is today; a start is as long before the end as the report usually covers.
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

// builder is one report in the making.
type builder struct {
	app    core.App
	engine *billing.Engine
	q      Query
	now    time.Time
	today  string // in the practice
}

// totals reads what the entries asked about come to.
func (m *builder) totals(by ...billing.Dimension) ([]billing.Totals, error) {
	return m.totalsBetween(m.q.From, m.q.To, by...)
}

func (m *builder) totalsBetween(from, to string, by ...billing.Dimension) ([]billing.Totals, error) {
	return billing.LoadTotals(m.app, m.filter(from, to), by...)
}

func (m *builder) filter(from, to string) billing.TotalsFilter {
	return billing.TotalsFilter{From: from, To: to, CPTCode: m.q.CPTCode, Patient: m.q.PatientID, Payer: m.q.Payer, Provider: m.q.Provider}
}

// addUp adds sums up.
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
