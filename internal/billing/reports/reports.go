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
	"sync"
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

// span is what a report covers when no dates are given.
type span int

const (
	thirtyDays   span = iota // through today
	twelveMonths             // this one and the eleven before
	thisMonth
	everything
)

// kinds are the reports. Source: docs/decisions/billing.md, "Report parameters (all 13)" and "Report shapes".
var kinds = map[Name]struct {
	span   span
	cached bool
	title  string
	make   func(*maker) (any, error)
}{
	ExecutiveDashboard:   {twelveMonths, true, "Executive dashboard", (*maker).executive},
	Revenue:              {thirtyDays, false, "Revenue", (*maker).revenue},
	ClaimsStatus:         {thirtyDays, false, "Claims by status", (*maker).claimsStatus},
	Unbilled:             {everything, false, "Unbilled activity", (*maker).unbilled},
	Aging:                {everything, false, "Aging of open claims", (*maker).aging},
	PayerPerformance:     {thirtyDays, true, "Payer performance", (*maker).payerPerformance},
	PatientSummary:       {everything, false, "Patient summary", (*maker).patientSummary},
	CPTUtilization:       {thirtyDays, false, "Use of CPT codes", (*maker).cptUtilization},
	MonthlyTrend:         {twelveMonths, true, "Monthly trend", (*maker).monthlyTrend},
	ProviderProductivity: {thirtyDays, false, "Provider productivity", (*maker).productivity},
	TasksSummary:         {everything, false, "Tasks", (*maker).tasks},
	QuickStats:           {thisMonth, false, "Quick stats", (*maker).quickStats},
}

// Names are the reports in alphabetical order.
func Names() []Name { return slices.Sorted(maps.Keys(kinds)) }

// Title is how a paper names the report.
func (n Name) Title() string { return kinds[n].title }

// Query is what a report is asked. From and To are practice days, both included; "" is open. nil and "" leave a filter out; a pointer to "" is
// self-pay, or no provider. Record ids.
type Query struct {
	From, To        string
	Payer, Provider *string
	CPTCode         string
	PatientID       string
	Offset, Limit   int // of patient-summary; no limit for 0
}

// key is the query as text, for the cache.
func (q Query) key() string {
	text := func(id *string) string {
		if id == nil {
			return "any"
		}
		return *id
	}
	return fmt.Sprintf("%q", []string{q.From, q.To, text(q.Payer), text(q.Provider), q.CPTCode, q.PatientID})
}

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
	return &Engine{billing: b, cache: cache{keep: keep}}
}

// Make makes a report, or finds it in the cache unless it is to be made anew. Callers of different roles share nothing.
func (e *Engine) Make(app core.App, name Name, q Query, role string, anew bool, now time.Time) (Report, error) {
	kind, known := kinds[name]
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
	body, err := kind.make(&maker{app: app, engine: e.billing, q: q, now: now, today: e.billing.Day(now)})
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
func (e *Engine) defaults(s span, q Query, now time.Time) Query {
	if s == everything {
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

// maker is one report in the making.
type maker struct {
	app    core.App
	engine *billing.Engine
	q      Query
	now    time.Time
	today  string // in the practice
}

// sums reads what the entries asked about come to.
func (m *maker) sums(by ...billing.Dimension) ([]billing.Sum, error) {
	return m.sumsOf(m.q.From, m.q.To, by...)
}

func (m *maker) sumsOf(from, to string, by ...billing.Dimension) ([]billing.Sum, error) {
	return billing.Sums(m.app, m.filter(from, to), by...)
}

func (m *maker) filter(from, to string) billing.SumFilter {
	return billing.SumFilter{From: from, To: to, CPTCode: m.q.CPTCode, Patient: m.q.PatientID, Payer: m.q.Payer, Provider: m.q.Provider}
}

// total adds sums up.
func total(sums []billing.Sum) (all billing.Sum) {
	for _, s := range sums {
		all.Claims += s.Claims
		all.Units += s.Units
		all.Amount += s.Amount
		all.Collected += s.Collected
		all.SubmittedClaims += s.SubmittedClaims
		all.SubmittedAmount += s.SubmittedAmount
		all.DeniedClaims += s.DeniedClaims
		all.SettledClaims += s.SettledClaims
		all.SettledDays += s.SettledDays
		all.Billed += s.Billed
		all.Adjusted += s.Adjusted
		all.PatientShare += s.PatientShare
		all.Refunded += s.Refunded
	}
	return all
}

// mostKept bounds the memory of the cache; when it is full the oldest goes.
const mostKept = 256

// cache keeps finished reports. The zero value keeps none.
type cache struct {
	keep  time.Duration
	mutex sync.Mutex
	kept  map[string]Report
}

func (c *cache) find(key string, now time.Time) (Report, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found, ok := c.kept[key]
	if !ok || !c.fresh(found, now) {
		return Report{}, false
	}
	found.Cached = true
	return found, true
}

func (c *cache) fresh(r Report, now time.Time) bool { return now.Sub(r.GeneratedAt) < c.keep }

func (c *cache) put(key string, report Report, now time.Time) {
	if c.keep <= 0 {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.kept == nil {
		c.kept = map[string]Report{}
	}
	c.kept[key] = report
	if len(c.kept) <= mostKept {
		return
	}
	oldest := key
	for k, r := range c.kept {
		if r.GeneratedAt.Before(c.kept[oldest].GeneratedAt) {
			oldest = k
		}
		if !c.fresh(r, now) {
			delete(c.kept, k)
		}
	}
	if len(c.kept) > mostKept {
		delete(c.kept, oldest)
	}
}
