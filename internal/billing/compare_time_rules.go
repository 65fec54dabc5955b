package billing

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// TimeRuleResult is what a month bills under one time rule.
type TimeRuleResult struct {
	Rule     string      `json:"rule"`
	InForce  bool        `json:"in_force"` // for the practice
	Minutes  int         `json:"minutes"`  // that count
	Patients int         `json:"patients"` // with at least one code
	Codes    []CodeUnits `json:"codes"`
	Expected Cents       `json:"expected"`
}

// CodeUnits is how many units of a code a month's time supports.
type CodeUnits struct {
	Code  string `json:"cpt_code"`
	Units int    `json:"units"`
}

// CompareTimeRules returns what a month's consented time, billed or not, supports under each
// time rule. Patients of a payer with its own rule count by that rule in both. It stores nothing.
// The current month counts with the time logged so far. Source: docs/decisions/billing.md, "The
// twenty-minute rule".
func (e *Engine) CompareTimeRules(app core.App, month Span, now time.Time) ([]TimeRuleResult, error) {
	t, err := e.loadPriceList(app)
	if err != nil {
		return nil, err
	}
	list := []TimeRuleResult{}
	for _, rule := range []string{InteractiveOnly, WithCareManagement} {
		r := TimeRuleResult{Rule: rule, InForce: rule == e.ruleNameOf(month, "")}
		if month.Start < careManagementSince {
			rule = InteractiveOnly // CMS did not count care management yet
		}
		if err := e.applyMinutesRule(app, t, &r, month, e.byPayer(e.timeRule(rule), month), e.Day(now) > month.End); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

func (e *Engine) applyMinutesRule(app core.App, t priceList, r *TimeRuleResult, month Span, rule collections.TimeRule, isOver bool) error {
	from, to := e.instants(month)
	sums, err := collections.SumTime(app, from, to, "", "", "", rule)
	if err != nil {
		return err
	}
	ids := make([]string, len(sums))
	for i, sum := range sums {
		ids[i] = sum.PatientID
	}
	facts, err := e.loadFacts(app, ids, month.Start)
	if err != nil {
		return err
	}
	times, err := e.loggedTimeByRule(app, ids, month, rule)
	if err != nil {
		return err
	}
	units := map[string]int{}
	for id, f := range facts {
		counting := e.dropUncountedTime(f, times[id], month)
		blocks := e.PlanMonth(counting, isOver)
		r.Minutes += sumCounted(counting) / 60
		for _, b := range blocks {
			units[b.Code] += b.Units
			r.Expected += t.expectedRate(f.payer, b.Code, b.ServiceDate) * Cents(b.Units)
		}
		if len(blocks) > 0 {
			r.Patients++
		}
	}
	for _, code := range []string{FirstTen, FirstTwenty, NextTwenty} {
		r.Codes = append(r.Codes, CodeUnits{code, units[code]})
	}
	return nil
}
