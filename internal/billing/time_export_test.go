package billing

import (
	"testing"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// RuleForTest is the rule that storage is asked by.
func (e *Engine) RuleForTest(month Span) collections.TimeRule { return e.countsOf(month) }

// SecondsForTest are those that a run counts.
func (e *Engine) SecondsForTest(t *testing.T, app core.App, patient string, month Span) int {
	t.Helper()
	stretches, err := e.stretchesOf(app, []string{patient}, month)
	if err != nil {
		t.Fatal(err)
	}
	return CountedSeconds(stretches[patient])
}

// UnbilledSecondsForTest are those that the look for unbilled time counts.
func (e *Engine) UnbilledSecondsForTest(t *testing.T, app core.App, patient string, month Span) int {
	t.Helper()
	u := &unbilled{Engine: e, app: app, span: month}
	months, err := u.stretchesByMonth([]string{patient})
	if err != nil {
		t.Fatal(err)
	}
	return CountedSeconds(months[patient][month])
}
