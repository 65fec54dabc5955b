package billing

import (
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// RuleForTest returns the rule in the form of the storage layer.
func (e *Engine) RuleForTest(month Span) collections.TimeRule { return e.timeRuleOf(month) }

// SecondsForTest returns the seconds that a run counts.
func (e *Engine) SecondsForTest(t *testing.T, app core.App, patient string, month Span) int {
	t.Helper()
	times, err := e.loggedTime(app, []string{patient}, month)
	if err != nil {
		t.Fatal(err)
	}
	return CountedSeconds(times[patient])
}

// UnbilledSecondsForTest returns the seconds that the search for unbilled time counts.
func (e *Engine) UnbilledSecondsForTest(t *testing.T, app core.App, patient string, month Span) int {
	t.Helper()
	u := &unbilledSearch{Engine: e, app: app, span: month}
	patients, err := e.loadFacts(app, []string{patient}, month.Start)
	if err != nil {
		t.Fatal(err)
	}
	months, err := u.loggedTimeByMonth([]string{patient}, patients)
	if err != nil {
		t.Fatal(err)
	}
	return CountedSeconds(months[patient][month])
}

// CountedForTest is the recounted time of an entry, and the reasons that block it.
type CountedForTest struct {
	Minutes, OfPatient int
	Against            []string
}

// CountedForTest recounts an entry as a review does.
func (e *Engine) CountedForTest(t *testing.T, app core.App, entry *collections.BillingEntry) CountedForTest {
	t.Helper()
	r, err := e.newRecount(app, entry, time.Time{})
	if err == nil {
		err = r.recountFacts()
	}
	if err != nil {
		t.Fatal(err)
	}
	return CountedForTest{r.actual.minutes, r.actual.minutesWithOverlap, timeBlockingReasons(baseRule(r.claim.code, r.claim.service), r.claim, r.actual)}
}

// UsePacksForTest replaces the shipped rules until the test ends.
func UsePacksForTest(t *testing.T, packs ...RulePack) {
	before := rulePacks
	rulePacks, rules = packs, rulesOf(packs)
	t.Cleanup(func() { rulePacks, rules = before, rulesOf(before) })
}

// BesideReasonsForTest returns why two codes are not both billed on a service date.
func BesideReasonsForTest(code, other, serviceDate string) []string {
	return exclusionReasons(code, other, serviceDate)
}
